"""What becomes of a sweep's cases when the sweep itself is killed."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from fedmpi.cli.sweep import _end_with_parent
from fedmpi.store.lock import state
from fedmpi.store.reader import load_run


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_case_of_a_killed_sweep_finishes_its_round_and_ends(fedmpi_process, tiny_suite, tmp_path):
    options = ["--set", "rounds=100000", "--set", "algorithm=fedavg", "--set", "checkpoint_seconds=0.1"]
    sweep = fedmpi_process("sweep", tiny_suite, "--out", "runs", *options)
    folder = tmp_path / "runs" / "fedavg-rounds=100000-checkpoint_seconds=0.1"
    wait_for((folder / "checkpoints/manifest").exists)
    sweep.kill()
    sweep.communicate()
    wait_for(lambda: state(folder) == "free")
    run = load_run(folder)
    assert run.status == "interrupted" and run.reason.startswith("stopped by a signal after round")


@pytest.mark.parametrize(("parent", "code"), [(os.getpid, 0), (lambda: 1, 75)])
def test_a_case_whose_sweep_is_gone_already_does_not_begin(parent, code):
    process = subprocess.Popen([sys.executable, "-c", ""], preexec_fn=partial(_end_with_parent, parent()))
    assert process.wait() == code


def test_a_case_that_starts_while_the_sweep_is_stopped_is_asked_too(
    fedmpi, tiny_suite, tmp_path, monkeypatch
):
    from fedmpi.cli import sweep

    start = sweep._Sweep._start

    def stopped_within(self, item):
        os.kill(os.getpid(), signal.SIGTERM)
        start(self, item)

    monkeypatch.setattr(sweep._Sweep, "_start", stopped_within)
    done = fedmpi("sweep", tiny_suite, "--out", "runs", "--set", "rounds=100000")
    assert done.returncode == 75
    assert "3 cases are left" in done.stdout
