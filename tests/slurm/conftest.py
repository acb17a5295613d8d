"""The throw-away Slurm of these tests, and what they ask of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, missing

SYSTEM = """
description = "Virtual nodes of one machine"
[node]
cores = 1                      # so that two ranks take two nodes
[launch]
command = "srun -K0 -W3 --mpi=pmi2"
environment = { MPIR_CVAR_ENABLE_HEAVY_YIELD = "1" }   # more ranks than cores
[limits]
minutes = 30
nodes = 4
"""


@pytest.fixture(scope="session")
def cluster():
    """Start Slurm for these tests; skip where it is not installed."""
    with started(nodes=4, cpus=2) as found:
        yield found


@pytest.fixture
def slow_cluster():
    """Three nodes behind links of 10 Mbit/s."""
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode or not shutil.which("tc"):
        pytest.skip("no network namespaces here")
    with started(nodes=3, cpus=1, net="10mbit") as found:
        yield found


@contextmanager
def started(**settings):
    if reason := missing():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="fedmpi-slurm-"))
    cluster = Cluster(folder, **settings)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def slurm(cluster, tmp_path, monkeypatch):
    """The cluster, with this test's environment pointing at it; a system file ``virtual.toml``."""
    monkeypatch.chdir(tmp_path)
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
    monkeypatch.setenv("FEDMPI_MPI_START_S", "60")
    (tmp_path / "virtual.toml").write_text(SYSTEM)
    yield cluster
    cluster.command("scancel", "-f", "-u", "root", check=False)


def wait_for(condition, seconds, what):
    """Poll until `condition()` is true; return its value. `what` is words, or what gives them at the end."""
    until = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > until:
            pytest.fail(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.2)
    return value


_CALM_S = 4.0
"""slurmd takes a job that starts again within two seconds of its end for the one it has just killed."""


def drain(cluster, seconds):
    """Wait until the queue is empty, sparing jobs that were queued again Slurm's two minutes' delay.

    The delay is there for the processes of the attempt before, so it ends when they have been gone for a while.
    """
    gone = {}

    def empty():
        done = cluster.command("squeue", "-h", "-r", "-o", "%i|%A|%T|%r")
        for line in done.stdout.splitlines():
            task, job, state, reason = line.split("|")
            if state != "PENDING" or reason != "BeginTime" or cluster.steps(f"{job}."):
                gone.pop(task, None)
            elif time.monotonic() - gone.setdefault(task, time.monotonic()) > _CALM_S:
                cluster.command("scontrol", "update", f"jobid={task}", "StartTime=now", check=False)
        return not done.stdout.strip()

    wait_for(empty, seconds, "the queue is empty")


def warn(cluster, task):
    """Send a batch script the signal that Slurm sends before a time limit or a preemption.

    scancel of Slurm 22.05 delivers it to a task of an array, believes that it has not, and tries again
    every 5 s without end.
    """
    cluster.command("timeout", "2", "scancel", "--batch", "--signal=USR1", task, check=False)
