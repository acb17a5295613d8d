"""A file system that refuses the system's locks (Lustre without flock, NFS without lockd, DVS)."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.cli.test_leaderboard import SUITE as TRACK
from tests.mpi.launcher import ROOT, find

REFUSED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

static int next(const char *name, int file, int command, void *argument) {
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, name);
    switch (command) {
    case F_GETLK: case F_SETLK: case F_SETLKW: case F_OFD_GETLK: case F_OFD_SETLK: case F_OFD_SETLKW:
        errno = ENOLCK;
        return -1;
    }
    return real(file, command, argument);
}

#define LIKE_FCNTL(name)                         \\
    int name(int file, int command, ...) {       \\
        va_list rest;                            \\
        va_start(rest, command);                 \\
        void *argument = va_arg(rest, void *);   \\
        va_end(rest);                            \\
        return next(#name, file, command, argument); \\
    }
LIKE_FCNTL(fcntl)
LIKE_FCNTL(fcntl64)

int flock(int file, int operation) { errno = 524; return -1; }
int lockf(int file, int command, off_t size) { errno = ENOLCK; return -1; }
int lockf64(int file, int command, off64_t size) { errno = ENOLCK; return -1; }
"""

SUITE = """
name = "long"
[case]
dataset = { name = "synthetic", synthetic = { domains = 3, graphs = 40 } }
partition = "per-dataset"
rounds = 150
checkpoint_seconds = 0.1
[matrix]
algorithm = ["fedavg"]
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """Return the environment of a process that gets no lock; HDF5 is asked for its own by the site."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("refused")
    (folder / "refused.c").write_text(REFUSED)
    words = ["cc", "-shared", "-fPIC", "-o", "refused.so", "refused.c", "-ldl"]
    subprocess.run(words, cwd=folder, check=True)
    return {"LD_PRELOAD": str(folder / "refused.so"), "HDF5_USE_FILE_LOCKING": "BEST_EFFORT"}


@pytest.fixture
def without_locks(refused, tmp_path):
    """Return a function that runs a command line in such a process to its end."""

    def run(*arguments):
        command = [sys.executable, "-m", "fedmpi", *map(str, arguments)]
        environment = {**os.environ, **refused, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run


def test_a_run_is_killed_resumed_and_reported(refused, without_locks, fedmpi, tmp_path, monkeypatch):
    (tmp_path / "long.toml").write_text(SUITE)
    folder = tmp_path / "runs/fedavg"
    with monkeypatch.context() as inside:
        for name, value in refused.items():
            inside.setenv(name, value)
        job = find("mpich").start(2, "-m", "fedmpi", "run", "long.toml", "--out", "runs", cwd=tmp_path)
    until = time.monotonic() + 120
    while not (folder / "checkpoints/manifest").exists():
        assert job.poll() is None and time.monotonic() < until, job.communicate()[0]
        time.sleep(0.01)
    os.killpg(job.pid, signal.SIGKILL)
    job.communicate()
    assert "stale" in without_locks("watch", folder, "--once").stdout
    resumed = without_locks("run", "long.toml", "--out", "runs", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert load_run(folder).status == "complete"
    assert len(load_run(folder).attempts) == 2

    (folder / "run.h5").write_bytes(b"")
    for words in (
        ("records", "repair", folder),
        ("records", "pack", folder, "--suite", "long.toml", "--out", "bundle.tar.gz"),
        ("records", "verify", "bundle.tar.gz"),
        ("report", folder),
        ("jobs", "plan", "long.toml", "--system", ROOT / "jobs/systems/generic-cpu.toml"),
    ):
        done = without_locks(*words)
        assert done.returncode == 0, (words, done.stdout + done.stderr)
    assert fedmpi("run", "long.toml", "--out", "locked").returncode == 0
    assert differences(folder, tmp_path / "locked" / folder.name) == []


def test_a_track_of_the_leaderboard_is_run(without_locks, tmp_path):
    (tmp_path / "demo.toml").write_text(TRACK)
    done = without_locks("leaderboard", "run", "demo.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 rows of this run" in done.stdout


def test_info_says_whether_the_working_folder_has_locks(without_locks):
    assert '"flock": "no: Unknown error 524"' in without_locks("info").stdout
