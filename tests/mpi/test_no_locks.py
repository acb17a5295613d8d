"""A file system that refuses the system's locks (Lustre without flock, NFS without lockd, DVS)."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.cli.test_leaderboard import SUITE as TRACK
from tests.mpi.launcher import ROOT, end, find
from tests.mpi.storm import STRUCK

REFUSED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

int fcntl(int file, int command, ...) {
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, "fcntl");
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    switch (command) {
    case F_GETLK: case F_SETLK: case F_SETLKW: case F_OFD_GETLK: case F_OFD_SETLK: case F_OFD_SETLKW:
        errno = ENOLCK;
        return -1;
    }
    return real(file, command, argument);
}
int flock(int file, int operation) { errno = 524; return -1; }
int lockf(int file, int command, off_t size) { errno = ENOLCK; return -1; }
int fcntl64(int file, int command, ...) __attribute__((alias("fcntl")));
int lockf64(int file, int command, off_t size) __attribute__((alias("lockf")));
"""

SUITE = """
name = "long"
[case]
dataset = { name = "synthetic", synthetic = { domains = 3, graphs = 40 } }
partition = "per-dataset"
rounds = 5
checkpoint_seconds = 0.0
[matrix]
algorithm = ["fedavg"]
"""

ALL = """
import json, sys
from fedmpi.cli.main import main
for words in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (words, ended.code)
"""


@pytest.fixture
def refused(tmp_path):
    """Return the environment of a process that gets no lock; HDF5 is asked for its own by the site."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (tmp_path / "refused.c").write_text(REFUSED)
    words = ["cc", "-shared", "-fPIC", "-o", "refused.so", "refused.c", "-ldl"]
    subprocess.run(words, cwd=tmp_path, check=True)
    return {"LD_PRELOAD": str(tmp_path / "refused.so"), "HDF5_USE_FILE_LOCKING": "BEST_EFFORT"}


@pytest.fixture
def without_locks(refused, tmp_path):
    """Return a function that runs command lines in such a process, to their good ends, and returns their output."""

    def run(*commands):
        environment = {**os.environ, **refused, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, "-c", ALL, json.dumps([command.split() for command in commands])]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.long
def test_a_run_is_killed_resumed_and_reported_and_a_track_is_run(
    refused, without_locks, fedmpi, tmp_path, monkeypatch
):
    (tmp_path / "long.toml").write_text(SUITE)
    (tmp_path / "demo.toml").write_text(TRACK)
    folder = tmp_path / "runs/fedavg"
    with monkeypatch.context() as inside:
        for name, value in refused.items():
            inside.setenv(name, value)
        words = (STRUCK, "fedavg", "held", 0, "run", "long.toml", "--out", "runs")
        job = find("mpich").start(2, *words, cwd=tmp_path)
    until = time.monotonic() + 120
    while not (folder / "checkpoints/manifest").exists():
        assert job.poll() is None and time.monotonic() < until, job.communicate()[0]
        time.sleep(0.01)
    end(job)
    job.communicate()
    said = without_locks(
        "watch runs/fedavg --once", "run long.toml --out runs --resume", "leaderboard run demo.toml", "info"
    )
    assert "stale" in said
    assert "2 rows of this run" in said and "10 rows of this run" in said
    assert '"flock": "no: Unknown error 524"' in said
    assert load_run(folder).status == "complete"
    assert len(load_run(folder).attempts) == 2

    (folder / "run.h5").write_bytes(b"")
    without_locks(
        "records repair runs/fedavg",
        "records pack runs/fedavg --suite long.toml --out bundle.tar.gz",
        "records verify bundle.tar.gz",
        "report runs/fedavg",
        f"jobs plan long.toml --system {ROOT}/jobs/systems/generic-cpu.toml",
    )
    assert fedmpi("run", "long.toml", "--out", "locked").returncode == 0
    assert differences(folder, tmp_path / "locked" / folder.name) == []
