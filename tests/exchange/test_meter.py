"""What a row of measurements holds of the time around the rounds."""

from types import SimpleNamespace

import numpy as np
import pytest

from fedmpi.comm.world import World
from fedmpi.exchange import meter
from fedmpi.programs.position import Position
from fedmpi.store.schema import PHASES


class Counter:
    """Joules that a test says."""

    value = 0.0

    def joules(self):
        return self.value


@pytest.fixture
def clock(monkeypatch):
    """Time as a test says: a CPU second, and three joules, for two seconds on the wall."""
    now = SimpleNamespace(wall=0.0, counter=Counter())
    monkeypatch.setattr(meter.time, "perf_counter", lambda: now.wall)
    monkeypatch.setattr(meter.time, "process_time", lambda: now.wall / 2)

    def passes(seconds):
        now.wall += seconds
        now.counter.value += 1.5 * seconds

    now.passes = passes
    return now


def made(clock):
    energy = SimpleNamespace(of_host=True, of_devices=False, reads=True, host=clock.counter, devices=None)
    return meter.Meter(World().collectives, Position(), energy=energy)


def test_what_is_done_again_is_in_no_row(clock):
    again = made(clock)
    with again.before_rounds("train", counted=False):
        clock.passes(8)
    again.start_clock()
    clock.passes(2)
    row = again.table(again.snapshot()[np.newaxis])
    assert (row["round_seconds"], row["cpu_seconds"][0], row["host_joules"][0]) == (2, 1, 3)
    assert not row["phase_seconds"].any() and not row["phase_joules"].any()


def test_the_first_row_has_what_comes_before_the_rounds_and_no_more(clock):
    counted = made(clock)
    clock.passes(1)  # the start of the program
    with counted.before_rounds("train", counted=True):
        clock.passes(8)
    clock.passes(64)
    counted.start_clock()
    rows = []
    for seconds in (2, 4):
        with counted.phase("train"):
            clock.passes(seconds)
        clock.passes(1)
        rows.append(counted.table(counted.snapshot()[np.newaxis]))
    train = PHASES.index("train")
    assert [row["round_seconds"] for row in rows] == [8 + 2 + 1, 4 + 1]
    assert [row["phase_seconds"][0, train] for row in rows] == [8 + 2, 4]
    assert [row["cpu_seconds"][0] for row in rows] == [11 / 2, 5 / 2]
    assert [row["host_joules"][0] for row in rows] == [1.5 * 11, 1.5 * 5]
    assert [row["phase_joules"][0, train] for row in rows] == [1.5 * 10, 1.5 * 4]
