"""torch-geometric for Spack, newer than the one among its own packages."""

from spack.package import depends_on, version
from spack_repo.builtin.packages.py_torch_geometric.package import PyTorchGeometric as Builtin


class PyTorchGeometric(Builtin):
    """Graph neural networks in PyTorch."""

    version("2.8.1", sha256="3d4431567fcf4865a29cfec25c52484382dd38fd46a45fb4f9d473545d64b812")

    depends_on("py-flit-core@3.12:3", when="@2.8:", type="build")
    depends_on("py-xxhash", when="@2.8:", type=("build", "run"))
