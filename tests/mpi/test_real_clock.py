"""Runs by the real clock: nobody waits for another, and a replay comes to the same bits."""

import time
from pathlib import Path

import numpy as np
import pytest

from fedmpi.store.arrivals import NAME
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.mpi.launcher import end, find
from tests.mpi.session import SUITE
from tests.started import sets

BUFFERED = ("case=fedprox", "schedule=buffered", "schedule.size=2", "schedule.clock=real", "rounds=12")
ASYNCHRONOUS = (
    "case=buffered",
    "compression=none",
    "schedule=asynchronous",
    "schedule.clock=real",
    "rounds=20",
)


def launched(mpi, ranks, *arguments, cwd, code=0):
    """Run a command on so many ranks, and return what it prints."""
    ended, output = find(mpi).run(ranks, "-m", "fedmpi", *arguments, cwd=cwd, timeout=240)
    assert ended == code, output
    return output


def started(mpi, ranks, settings, cwd):
    """Return the folder of a run that is complete."""
    launched(mpi, ranks, "run", SUITE, *sets(*settings), "--out", "runs", cwd=cwd)
    (folder,) = (cwd / "runs").iterdir()
    return folder


@pytest.mark.parametrize(
    ("mpi", "settings", "ranks"),
    [("mpich", BUFFERED, 1), ("mpich", ASYNCHRONOUS, 2), ("openmpi", ASYNCHRONOUS, 1)],
)
def test_a_replay_is_the_run(mpi, settings, ranks, tmp_path):
    folder = started(mpi, 3, settings, tmp_path)
    run = load_run(folder)
    staleness, seconds = run.results["staleness"], run.measured("virtual_seconds")
    assert ((staleness >= 0).sum(axis=1) == (1 if settings is ASYNCHRONOUS else 2)).all()
    assert (staleness > 0).any()
    assert (seconds > 0).all()
    output = launched("mpich", ranks, "replay", folder, "--out", "again", cwd=tmp_path)
    assert output.splitlines()[-1] == f"again is identical to {folder}"
    assert np.array_equal(load_run(tmp_path / "again").measured("virtual_seconds"), seconds)


def test_a_run_that_is_killed_goes_on_in_its_order(tmp_path):
    arguments = "-m", "fedmpi", "run", SUITE, *sets(*BUFFERED, "rounds=60", "checkpoint_seconds=0.0")
    process = find("mpich").start(3, *arguments, "--out", "runs", cwd=tmp_path)
    log = tmp_path / "runs"
    while process.poll() is None and not list(log.rglob(NAME)):
        time.sleep(0.01)
    time.sleep(0.5)
    end(process)
    process.wait()
    (folder,) = log.iterdir()
    order = (folder / NAME).read_bytes()
    assert load_run(folder).rounds_completed < 60
    launched("mpich", 2, "run", folder, "--resume", cwd=tmp_path)
    assert load_run(folder).rounds_completed == 60
    assert (folder / NAME).read_bytes() == order
    launched("mpich", 1, "replay", folder, "--out", "again", cwd=tmp_path)
    assert differences(folder, tmp_path / "again") == []


def test_nobody_waits_for_slow_devices(tmp_path):
    slow = ("devices=file", "devices.columns={speed=[1.0,50.0,50.0,50.0,50.0]}")
    folder = started("mpich", 3, (*BUFFERED, *slow, "rounds=40"), tmp_path)
    often = (load_run(folder).results["staleness"] >= 0).sum(axis=0)
    assert often[0] < often[1:].min()


def test_what_cannot_be_replayed_is_one_line(fedmpi):
    alone = fedmpi("run", SUITE, *sets(*BUFFERED), "--out", "alone", code=2)
    assert 'schedule.clock = "real" needs a rank beside the server: mpiexec -n 2' in alone.stderr
    fedmpi("run", SUITE, *sets("case=fedavg", "rounds=1"), "--out", "plain", code=0)
    (folder,) = Path("plain").iterdir()
    assert f'{folder} is no run with schedule.clock = "real"' in fedmpi("replay", folder, code=2).stderr
