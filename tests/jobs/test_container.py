"""The Apptainer definition and the Dockerfile: sections that exist, shell that parses, versions that fit; built where that is possible."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.jobs.conftest import check_shell

ROOT = Path(__file__).parent.parent.parent
DEFINITION = ROOT / "jobs" / "container" / "fedmpi.def"
DOCKERFILE = DEFINITION.with_name("Dockerfile")
SECTIONS = {"labels", "files", "post", "environment", "runscript", "test", "help", "startscript", "setup"}


def sections():
    """Return the text of each section by name, the header under the empty name."""
    parts = re.split(r"^%(\w+)\n", DEFINITION.read_text(), flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def test_header_and_sections_are_those_that_apptainer_knows():
    found = sections()
    header = [line for line in found[""].splitlines() if line and not line.startswith("#")]
    assert [line.partition(":")[0] for line in header] == ["Bootstrap", "From"]
    assert set(found) - {""} <= SECTIONS
    assert {"post", "environment", "runscript", "test"} <= set(found)


@pytest.mark.parametrize("name", ["post", "environment", "runscript", "test"])
def test_the_shell_in_it_is_clean(name, tmp_path):
    script = tmp_path / "section.sh"
    script.write_text(f"#!/bin/sh\n{sections()[name]}")
    check_shell(script, "sh")


def test_it_installs_the_tested_torch():
    torch = re.search(r"^torch==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[1]
    assert f"torch=={torch} " in sections()["post"]


def test_the_files_it_copies_are_there():
    for line in sections()["files"].split("\n"):
        if line.strip():
            source, target = line.split()
            assert (ROOT / source).exists()
            assert target == f"/opt/fedmpi/{source}"


def test_the_dockerfile_installs_the_same():
    text = DOCKERFILE.read_text().replace("\\\n", "")
    definition = sections()
    assert re.search(r"^ARG BASE=docker.io/library/(.*)$", text, re.MULTILINE)[1] in definition[""]
    (torch,) = re.findall(r"pip install --no-cache-dir (torch==\S+)", text)
    assert f"{torch} " in definition["post"]
    assert 'pip install --no-cache-dir -c constraints.txt ".[mpich]"' in text
    copied = [word for line in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE) for word in line.split()]
    assert copied == [line.split()[0] for line in definition["files"].splitlines() if line.strip()]


def test_the_dockerfile_sets_the_same_variables():
    text = DOCKERFILE.read_text().replace("\\\n", "")
    found = {word for line in re.findall("^ENV (.*)$", text, re.MULTILINE) for word in line.split()}
    wanted = sections()["environment"].replace("export", "").replace('"', "").split()
    assert found == set(wanted)


def test_it_can_be_built(tmp_path):
    if shutil.which("apptainer") is None:
        pytest.skip("no apptainer here: the definition is checked as text only")
    command = ["apptainer", "build", tmp_path / "fedmpi.sif", DEFINITION]
    assert subprocess.run(command, cwd=ROOT).returncode == 0
