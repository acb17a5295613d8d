"""A stand-in for Slurm's commands: small scripts on the path that answer what a test says, and remember."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

PLAIN = """
description = "Nodes of four cores"
[request]
partition = "short"
account = "me"
memory_per_rank = "2G"
[node]
cores = 4
[launch]
setup = ["module load python"]
[limits]
minutes = 60
nodes = 2
tasks = 10
at_once = 3
requeues = 2
[model]
start_seconds = 10.0
round_seconds = 1.0
"""


def check_shell(path, shell="bash"):
    """The shell can read it, and shellcheck has nothing to say."""
    checks = [[shell, "-n", path], *([["shellcheck", path]] if shutil.which("shellcheck") else [])]
    for command in checks:
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def system(tmp_path):
    """A system file ``plain.toml``."""
    path = tmp_path / "plain.toml"
    path.write_text(PLAIN)
    return path


class Fake:
    """Puts scripts of that name on the path; `calls` are the command lines they were given."""

    def __init__(self, folder):
        self.folder = folder
        self.log = folder / "calls"

    def answer(self, command, body):
        """Let `command` run these lines of bash; ``$n`` is how often it was called before."""
        path = self.folder / command
        count = self.folder / f"{command}.count"
        path.write_text(
            f'#!/usr/bin/env bash\necho "{command} $*" >>{self.log}\n'
            f"n=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) >{count}\n{body}\n"
        )
        path.chmod(0o755)

    def calls(self, command=""):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(command)]


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A Slurm that takes every job: arrays 101, 102, ..."""
    folder = tmp_path / "bin"
    folder.mkdir()
    stand_in = Fake(folder)
    number = 'echo x >>"$0.taken"; echo $((100 + $(wc -l <"$0.taken")))'
    stand_in.answer("sbatch", f"[[ $* == *--test-only* ]] || {{ {number}; }}")
    stand_in.answer("squeue", "true")
    stand_in.answer("scontrol", "exit 1")
    stand_in.answer("scancel", "true")
    stand_in.answer("sacct", "exit 1")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return stand_in
