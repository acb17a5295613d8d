"""Runs by the real clock: nobody waits for another, and a replay comes to the same bits."""

import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from fedmpi.analysis.columns import run_columns
from fedmpi.analysis.summary import summarise
from fedmpi.errors import BadInput
from fedmpi.store.arrivals import NAME, load
from fedmpi.store.identical import differences, results_digest
from fedmpi.store.reader import load_run
from tests.mpi.launcher import find
from tests.mpi.session import SUITE
from tests.mpi.storm import Launch
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


@pytest.mark.long
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


def steps(folder):
    """Return how many steps of the order are kept, and whether it has ended."""
    if not (folder / NAME).exists():
        return 0, False
    with np.load(folder / NAME) as order:
        return len(order["staleness"]), bool(order["ended"])


def struck(number, ranks, arguments, cwd, moment):
    """Start a command, send it a signal at a moment, and return its exit code."""
    process = find("mpich").start(ranks, "-m", "fedmpi", *arguments, cwd=cwd)
    while process.poll() is None and not moment():
        time.sleep(0.005)
    os.killpg(process.pid, number)
    process.communicate()
    return process.returncode


@pytest.mark.long
def test_a_run_that_is_killed_goes_on_with_the_steps_that_it_has(tmp_path):
    name, longer = tmp_path / "runs", sets(*BUFFERED, "rounds=50", "checkpoint_seconds=0.0")
    arguments, folders = ("run", SUITE, *longer, "--out", name), lambda: list(name.glob("*"))
    struck(signal.SIGKILL, 3, arguments, tmp_path, lambda: folders() and steps(folders()[0])[0] > 4)
    (folder,) = folders()
    resumed, known = ("run", folder, "--resume"), [steps(folder)]
    struck(signal.SIGKILL, 2, resumed, tmp_path, lambda: steps(folder)[0] > known[-1][0] + 4)
    known.append(steps(folder))
    launch = Launch(find("mpich"), 3, ("-m", "fedmpi", *resumed), tmp_path)
    launch.until(lambda: steps(folder)[0] > known[-1][0] + 4, 120.0)
    launch.send(signal.SIGTERM, "last rank", random.Random(0))
    assert launch.wait(60.0) == 0
    assert "stopped by a signal" in launch.output()
    known.append(steps(folder))
    assert load_run(folder).status == "interrupted"
    assert 4 < known[0][0] < known[1][0] < known[2][0] < 50
    assert not any(ended for _, ended in known)
    struck(signal.SIGKILL, 3, resumed, tmp_path, lambda: steps(folder)[1])
    order = (folder / NAME).read_bytes()
    assert load_run(folder).rounds_completed < 50
    launched("mpich", 1, *resumed, cwd=tmp_path)
    assert load_run(folder).rounds_completed == 50
    assert (folder / NAME).read_bytes() == order
    launched("mpich", 1, "replay", folder, "--out", "again", cwd=tmp_path)
    assert differences(folder, tmp_path / "again") == []
    (folder / NAME).write_bytes(order[:-100])
    with pytest.raises(BadInput, match=f"{NAME} is damaged: remove the run's folder and run the case again"):
        load(folder, load_run(folder).config_digest, 5)
    (folder / NAME).write_bytes(order)
    with pytest.raises(BadInput, match=f"{NAME} is another run's: remove"):
        load(folder, "0" * 64, 5)


@pytest.mark.long
def test_synchronous_rounds_wait_for_slow_devices_and_compute_the_same(tmp_path):
    settings = "case=fedprox", "rounds=3"
    slow = ("schedule.clock=real", "devices=file", "devices.columns={speed=[5.0,1.0,20.0,20.0,20.0]}")
    run = load_run(folder := started("mpich", 3, (*settings, *slow), tmp_path))
    seconds, clients = run.measured("virtual_seconds"), run.measured("client_wall_seconds")
    # Ranks leave the barrier that begins a round one by one: the server's clock may start a time slice later.
    assert (seconds > (clients * [4, 20, 1, 1, 1]).max(axis=1) - 0.01).all()
    assert (run.measured("cpu_seconds").max(axis=1) < seconds / 2).all()
    found = summarise(run, 0.01)
    assert found["to_target"]["virtual_seconds"] == seconds[0]
    assert "virtual s to target" in [column.heading for column in run_columns([found], run.metrics)]
    launched("mpich", 1, "run", SUITE, *sets(*settings), "--out", "plain", cwd=tmp_path)
    (plain,) = (tmp_path / "plain").iterdir()
    assert results_digest(load_run(plain)) == results_digest(run)
    output = launched("mpich", 2, "replay", folder, "--out", "again", cwd=tmp_path)
    assert output.splitlines()[-1] == f"again is identical to {folder}"
    again = load_run(tmp_path / "again")
    assert np.array_equal(again.measured("virtual_seconds"), seconds)
    assert (again.measured("round_seconds") < seconds).all()


@pytest.mark.long
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
