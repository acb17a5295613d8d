"""tslearn for Spack, whose own packages do not have it."""

from spack.package import depends_on, license, version
from spack_repo.builtin.build_systems.python import PythonPackage


class PyTslearn(PythonPackage):
    """Machine learning for time series: fedmpi takes its dynamic time warping."""

    homepage = "https://tslearn.readthedocs.io/"
    pypi = "tslearn/tslearn-0.10.0.tar.gz"

    license("BSD-2-Clause")

    version("0.10.0", sha256="d37147e49499f3c2b9b4f7f740c0f3ef67a3b69bf352ca6eadea532a0ab43d61")

    depends_on("py-setuptools@78:", type="build")
    depends_on("py-setuptools-scm@8:", type="build")

    depends_on("py-scikit-learn@1.5:", type=("build", "run"))
    depends_on("py-numpy@1.24.3:", type=("build", "run"))
    depends_on("py-scipy@1.10.1:", type=("build", "run"))
    depends_on("py-numba@0.61:", type=("build", "run"))
    depends_on("py-joblib@1.2:", type=("build", "run"))
    depends_on("py-statsmodels@0.14:", type=("build", "run"))
