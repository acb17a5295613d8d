"""What all tests share: the command line as a subprocess, and no silent skips where CI forbids them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fedmpi.cli.main import main

ROOT = Path(__file__).parent.parent

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it; tables are as wide as it says
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would each compile the same files


def pytest_addoption(parser):
    parser.addoption("--fuzz-examples", type=int, default=0, help="inputs per test of tests/fuzz, new ones")
    parser.addoption("--kills", type=int, default=0, help="random kills of tests/mpi/test_kill.py")
    parser.addoption("--fuzz-keep", default="", help="folder that inputs which fail are copied into")


LONG = ("mpi", "slurm", "cli", "benchmarks", "comm")
"""Folders of tests that take seconds each, the longest first."""

FIRST = "tests/mpi/test_sessions.py::test_session_of_one_rank"
"""What the other sessions wait for."""

SINGLY = tuple(f"tests/mpi/test_{name}.py" for name in ("checkpoints", "extend", "kill", "sessions"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Put long tests first, so that all workers end together."""
    items.sort(
        key=lambda item: (
            not item.nodeid.startswith(FIRST),
            (*LONG, _folder(item.nodeid)).index(_folder(item.nodeid)),
        )
    )


def pytest_collection_finish():
    """Spare the garbage collector all modules: tests that forget their plug-ins collect a hundred times."""
    gc.freeze()


def _folder(nodeid):
    return nodeid.split("/")[1]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Have one worker take all tests of Slurm, which share a cluster and mostly wait, and others by file.

    Tests of `SINGLY` are minutes each: they go to workers one by one.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Apart(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if nodeid.startswith(SINGLY):
                return nodeid
            return "slurm" if _folder(nodeid) == "slurm" else nodeid.split("::", 1)[0]

    config.option.loadscopereorder = False
    return Apart(config, log)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    reason = str(report.longrepr)
    wanted = "FEDMPI_MIRROR" in reason or "no mpich here" in reason or "no openmpi here" in reason
    if report.skipped and wanted and os.environ.get("FEDMPI_NO_SKIP"):
        report.outcome = "failed"
        report.longrepr = f"skipped although FEDMPI_NO_SKIP is set: {reason}"


@pytest.fixture(autouse=True)
def subnormal_numbers():
    """Keep subnormal numbers, which a run in this process may have had flushed."""
    if torch := sys.modules.get("torch"):
        torch.set_flush_denormal(False)


@pytest.fixture(scope="session", autouse=True)
def prepared_data(tmp_path_factory):
    """Keep prepared datasets of a test session in one folder of its own."""
    if "FEDMPI_DATA" not in os.environ:
        os.environ["FEDMPI_DATA"] = str(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def real_data():
    """Skip without the mirror of real datasets."""
    if not os.environ.get("FEDMPI_MIRROR"):
        pytest.skip("FEDMPI_MIRROR is not set: real datasets not at hand")


@pytest.fixture
def fedmpi(tmp_path, monkeypatch, capfd):
    """Return a function that runs a command line in this process, in an empty folder, to the given exit code.

    The program is the one that the console script starts; only the interpreter's start is spared.
    """
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=None):
        monkeypatch.setattr(sys, "argv", ["fedmpi", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        done = subprocess.CompletedProcess(arguments, int(ended.value.code or 0), out, err)
        assert code in (None, done.returncode), out + err
        return done

    return run


@pytest.fixture
def fedmpi_process(tmp_path):
    """Return a function that starts a command line as a process of its own."""

    def start(*arguments, launcher=()):
        command = [*launcher, sys.executable, "-m", "fedmpi", *map(str, arguments)]
        return subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return start


TINY_SUITE = """
name = "tiny"
[case]
dataset = { name = "synthetic", synthetic = { domains = 3, graphs = 40 } }
partition = "per-dataset"
rounds = 4
seed = 3
[matrix]
algorithm = ["fedavg", "fedprox", "self-train"]
"""


@pytest.fixture
def tiny_suite(tmp_path):
    """A suite of three cases that each take a fraction of a second."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY_SUITE)
    return path
