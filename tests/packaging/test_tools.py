"""Recipes read by the tools that they are for, where these are installed: the extra packaging has those of PyPI."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.loading import PACKAGING

CONTAINERS = PACKAGING.parent / "container"


def tool(name):
    """Return a module of the extra; skip without."""
    return pytest.importorskip(name, reason=f"no {name} here: pip install -e '.[packaging]'")


def test_hadolint_has_nothing_to_say_of_the_dockerfile():
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if program is None:
        pytest.skip("no hadolint here: pip install -e '.[packaging]'")
    done = subprocess.run([program, CONTAINERS / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_spython_reads_the_apptainer_definition():
    parsers = tool("spython.main.parse.parsers")
    (recipe,) = parsers.get_parser("singularity")(str(CONTAINERS / "fedmpi.def")).parse().values()
    assert recipe.fromHeader == "python:3.11-slim-bookworm"
    assert 'pip install --no-cache-dir -c constraints.txt ".[mpich]"' in recipe.install
    assert recipe.cmd == 'exec fedmpi "$@"'


def test_rattler_build_renders_the_conda_recipe():
    rattler_build = tool("rattler_build")
    (variant,) = rattler_build.Stage0Recipe.from_file(PACKAGING / "conda" / "recipe.yaml").render()
    assert (variant.recipe.package.name, str(variant.recipe.package.version)) == ("fedmpi", "0.1.0")
    assert len(variant.recipe.requirements.run) == 15


def test_easybuild_reads_the_easyconfig():
    parser = tool("easybuild.framework.easyconfig.parser")
    (path,) = (PACKAGING / "easybuild").glob("*.eb")
    config = parser.EasyConfigParser(str(path)).get_config_dict()
    assert config["toolchain"] == {"name": "foss", "version": "2025b"}
    assert [entry[0] for entry in config["exts_list"]] == ["torch-geometric", "tslearn", "typer", "fedmpi"]
