"""Wheel and source archive: built, installed away from the clone, and used there."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PARTS = ("fedmpi", "bench", "jobs", "pyproject.toml", "setup.py", "README.md", "LICENSE")


def call(folder, *words, **variables):
    """Run a Python command in a folder; return its standard output."""
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with fedmpi as the wheel brings it, which was made from the source archive."""
    place = tmp_path_factory.mktemp("package")
    (place / "tree").mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, place / "tree" / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place / "tree")
    build = "from setuptools import build_meta; print(build_meta.build_sdist(r'%s'))" % (place / "dist")
    call(place / "tree", "-c", build)
    (archive,) = (place / "dist").glob("fedmpi-*.tar.gz")
    assert re.fullmatch(r"fedmpi-0\.1\.0\.tar\.gz", archive.name)
    with tarfile.open(archive) as opened:
        opened.extractall(place / "unpacked", filter="data")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "-q")
    call(place, "-m", "pip", "wheel", *options, "-w", place / "dist", place / "unpacked" / archive.name[:-7])
    (wheel,) = (place / "dist").glob("*.whl")
    call(place, "-m", "pip", "install", *options, "--target", place / "site", wheel)
    return place / "site"


@pytest.fixture
def fedmpi_there(installed, tmp_path):
    return lambda line: call(tmp_path, "-m", "fedmpi", *line.split(), PYTHONPATH=str(installed))


def test_the_installed_package_is_the_one_that_is_used(installed, tmp_path):
    found = call(tmp_path, "-c", "import fedmpi; print(fedmpi.__file__)", PYTHONPATH=str(installed))
    assert Path(found.strip()) == installed / "fedmpi" / "__init__.py"


def test_it_says_its_version(fedmpi_there):
    assert fedmpi_there("--version") == "fedmpi 0.1.0\n"
    assert "\nversion: 0.1.0\n" in (ROOT / "CITATION.cff").read_text()


def test_suites_systems_and_pages_come_along(fedmpi_there, installed):
    assert "gcfl/table3" in fedmpi_there("suites gcfl")
    assert "generic-cpu" in fedmpi_there("jobs systems")
    assert fedmpi_there("options --markdown") == (ROOT / "docs" / "settings.md").read_text()
    bundled = {path.relative_to(ROOT / "bench") for path in (ROOT / "bench").rglob("*.toml")}
    there = installed / "fedmpi" / "suites"
    assert {path.relative_to(there) for path in there.rglob("*.toml")} == bundled


def test_a_run_and_its_page(fedmpi_there, tmp_path):
    fedmpi_there("new mine.toml")
    fedmpi_there("run mine.toml --set algorithm=fedavg --set seed=1 --set rounds=1 --set kernels=csr")
    fedmpi_there("report results/runs/mine --html page.html")
    assert "</html>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    "page", sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]), ids=lambda path: path.name
)
def test_extras_that_pages_install_exist(page):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = re.findall(r"pip install[^`\n]*?(?:fedmpi|\.)\[([a-z,]+)\]", page.read_text())
    assert {name for each in asked for name in each.split(",")} <= set(extras)
