"""fedmpi for Spack: what pyproject.toml asks for, with torch for processors, CUDA or ROCm."""

import os

from spack.package import depends_on, license, version
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.python import PythonPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage


class Fedmpi(PythonPackage, CudaPackage, ROCmPackage):
    """MPI-parallel benchmark suite for federated learning on graphs."""

    manual_download = True  # no release yet: README.md says how to install from a clone
    url = f"file://{os.getcwd()}/fedmpi-0.1.0.tar.gz"

    license("Apache-2.0")

    version("0.1.0")

    depends_on("py-setuptools@77:", type="build")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-numpy@2.0:", type=("build", "run"))
    depends_on("py-torch@2.5:", type=("build", "run"))
    depends_on("py-torch-geometric@2.6:", type=("build", "run"))
    depends_on("py-mpi4py@4.0:", type=("build", "run"))
    depends_on("py-h5py@3.11:", type=("build", "run"))
    depends_on("py-networkx@3.2:", type=("build", "run"))
    depends_on("py-tslearn@0.6.3:", type=("build", "run"))
    depends_on("py-scikit-learn@1.4:", type=("build", "run"))
    depends_on("py-scipy@1.11:", type=("build", "run"))
    depends_on("py-numba@0.60:", type=("build", "run"))
    depends_on("py-pydantic@2.7:", type=("build", "run"))
    depends_on("py-typer@0.15:", type=("build", "run"))
    depends_on("py-rich@13.7:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))

    depends_on("py-torch~cuda~rocm", when="~cuda~rocm")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"py-torch+cuda cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
    for target in ROCmPackage.amdgpu_targets:
        depends_on(f"py-torch~cuda+rocm amdgpu_target={target}", when=f"+rocm amdgpu_target={target}")
