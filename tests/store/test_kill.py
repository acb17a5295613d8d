"""A writer killed by SIGKILL in the middle of its work loses no finished round."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fedmpi.store.identical import differences
from fedmpi.store.reader import Run, load_run
from fedmpi.store.rebuild import rebuild
from fedmpi.store.record import RunRecord
from tests.store.conftest import WRITER


def _check(run: Run) -> None:
    """Assert that every round of the record holds the numbers that the writer wrote."""
    index = np.arange(run.rounds_completed)
    assert (run.results["test_loss"] == np.stack([index / 7, index / 11], axis=1)).all()
    assert (run.measured("round_seconds") == index / 3).all()


@pytest.mark.parametrize("after", [0.0, 0.011, 0.027])
def test_all_finished_rounds_are_readable_after_sigkill(tmp_path, after):
    folder = tmp_path / "case"
    root = Path(__file__).parents[2]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), "100000"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    for _ in range(5):
        writer.stdout.readline()
    time.sleep(after)
    writer.send_signal(signal.SIGKILL)
    rest = writer.communicate()[0].split()
    told = int(rest[-1]) + 1 if rest else 5
    run = load_run(folder)
    assert run.status == "stale"
    assert 1 <= run.rounds_completed <= told + 1  # the log alone may have the last second's
    _check(run)
    with RunRecord.reopen(folder) as record:
        assert record.notice is None and record.rounds_completed in (told, told + 1)
    run = load_run(folder)
    assert run.rounds_completed in (told, told + 1)
    _check(run)
    rebuild(folder)
    assert differences(folder, folder / "run.h5.damaged") == []
