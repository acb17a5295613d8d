"""What the recipes ask for is what pyproject.toml asks for: names, least versions, the version of fedmpi."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import fedmpi
from tests.packaging.loading import PACKAGING, Declared, load

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WANTED = dict(requirement.split(">=") for requirement in PROJECT["dependencies"])
PYTHON = PROJECT["requires-python"].removeprefix(">=")
BUNDLED = {
    "jinja2": "Python-bundle-PyPI",
    "rich": "Python-bundle-PyPI",
    "numpy": "SciPy-bundle",
    "scipy": "SciPy-bundle",
}
"""Packages that EasyBuild installs as part of others."""


def numbers(version):
    return tuple(int(part) for part in version.split("."))


@pytest.fixture
def spack(monkeypatch):
    """What a Spack package declares, by the name of its folder."""

    def read(package):
        declared = Declared()
        names = ("depends_on", "license", "version")
        builtin = "spack_repo.builtin.build_systems"
        modules = {
            "spack": {},
            "spack.package": {name: declared.directive(name) for name in names},
            "spack_repo": {},
            "spack_repo.builtin": {},
            builtin: {},
            f"{builtin}.python": {"PythonPackage": type("PythonPackage", (), {})},
            f"{builtin}.cuda": {"CudaPackage": type("CudaPackage", (), {"cuda_arch_values": ("80", "90")})},
            f"{builtin}.rocm": {"ROCmPackage": type("ROCmPackage", (), {"amdgpu_targets": ("gfx90a",)})},
            "spack_repo.builtin.packages": {},
            "spack_repo.builtin.packages.py_torch_geometric": {},
            "spack_repo.builtin.packages.py_torch_geometric.package": {"PyTorchGeometric": object},
        }
        load(f"spack_repo/fedmpi/packages/{package}/package.py", monkeypatch, modules)
        return declared

    return read


def test_spack_asks_for_them(spack):
    declared = spack("fedmpi")
    run = [
        arguments[0] for arguments, keywords in declared.of("depends_on") if "run" in keywords.get("type", ())
    ]
    assert run[0] == f"python@{PYTHON}:"
    assert run[1:] == [f"py-{name}@{least}:" for name, least in WANTED.items()]
    assert declared.of("version") == [((fedmpi.__version__,), {})]


def test_spack_builds_torch_for_the_same_gpus(spack):
    conditions = [
        (arguments[0], keywords["when"])
        for arguments, keywords in spack("fedmpi").of("depends_on")
        if "when" in keywords
    ]
    assert conditions == [
        ("py-torch~cuda~rocm", "~cuda~rocm"),
        ("py-torch+cuda cuda_arch=80", "+cuda cuda_arch=80"),
        ("py-torch+cuda cuda_arch=90", "+cuda cuda_arch=90"),
        ("py-torch~cuda+rocm amdgpu_target=gfx90a", "+rocm amdgpu_target=gfx90a"),
    ]


@pytest.mark.parametrize("name", ["torch-geometric", "tslearn"])
def test_packages_that_spack_lacks_are_new_enough(spack, name):
    (((version,), keywords),) = spack(f"py_{name.replace('-', '_')}").of("version")
    assert numbers(version) >= numbers(WANTED[name])
    assert re.fullmatch("[0-9a-f]{64}", keywords["sha256"])


def conda():
    return yaml.safe_load((PACKAGING / "conda" / "recipe.yaml").read_text())


def test_conda_asks_for_them():
    names = {"torch": "pytorch", "torch-geometric": "pytorch_geometric"}
    recipe = conda()
    python, *packages = recipe["requirements"]["run"]
    assert python == f"python >={PYTHON}"
    assert packages == [f"{names.get(name, name)} >={least}" for name, least in WANTED.items()]
    assert recipe["context"]["version"] == fedmpi.__version__


def test_conda_makes_the_same_command():
    ((name, target),) = PROJECT["scripts"].items()
    assert conda()["build"]["python"]["entry_points"] == [f"{name} = {target}"]


def test_easybuild_installs_new_enough_ones():
    (path,) = (PACKAGING / "easybuild").glob("*.eb")
    config = {"SOURCE_PY3_WHL": "", "SYSTEM": ""}
    exec(path.read_text(), config)  # an easyconfig is Python
    installed = {entry[0]: entry[1] for entry in (*config["dependencies"], *config["exts_list"])}
    modules = {name.lower(): version for name, version in installed.items()} | {"torch": installed["PyTorch"]}
    for name, least in WANTED.items():
        if name in BUNDLED:
            assert BUNDLED[name] in installed
        else:
            assert numbers(modules[name]) >= numbers(least), name
    assert numbers(installed["Python"]) >= numbers(PYTHON)
    assert path.name == f"fedmpi-{fedmpi.__version__}-foss-2025b.eb"
    assert config["exts_list"][-1] == ("fedmpi", fedmpi.__version__)
