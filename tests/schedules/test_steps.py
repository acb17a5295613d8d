"""Who is used in which step, by hand; on four clients."""

from itertools import islice

import numpy as np
import pytest

from fedmpi.devices.base import Devices
from fedmpi.schedules.asynchronous import AsynchronousOptions, BufferedOptions
from fedmpi.schedules.base import Federated, Work, count_of
from fedmpi.schedules.synchronous import DeadlineOptions, SynchronousOptions

SECONDS = np.array([2, 3, 4, 9])
"""Of a round of each client."""


def steps(options, number, participation=1.0, first=0, rounds=0):
    """Return the first steps of a federation whose samples are its first clients."""
    always = np.zeros(4)
    devices = Devices(0, *np.ones((4, 4)), always, always)
    work = Work(np.zeros(4, np.int64), SECONDS, np.zeros(4, np.int64))

    def sample(round, clients, share):
        return np.arange(count_of(share, clients))

    given = Federated(4, 0, participation, sample, devices, work, rounds=rounds)
    return list(islice(options.steps(given, first), number))


def used(options, number, **others):
    """Return what each step uses, with its staleness, and its end."""
    found = steps(options, number, **others)
    return [
        ([(client, int(step.staleness[client])) for client in step.participants.tolist()], step.clock)
        for step in found
    ]


def test_a_synchronous_step_lasts_as_long_as_its_slowest_client():
    assert used(SynchronousOptions(), 2) == [
        ([(0, 0), (1, 0), (2, 0), (3, 0)], 9),
        ([(0, 0), (1, 0), (2, 0), (3, 0)], 18),
    ]
    assert used(SynchronousOptions(), 1, participation=0.5)[0][1] == 3


def test_a_deadline_takes_the_first_and_stops_the_others():
    first, second = steps(DeadlineOptions(over_selection=2.0), 2, participation=0.5)
    assert (first.participants.tolist(), first.clock, second.clock) == ([0, 1], 3, 6)
    assert first.busy.tolist() == [2, 3, 3, 3]
    assert first.wasted.tolist() == [0, 0, 3 / 4, 3 / 9]


def test_a_deadline_keeps_what_comes_later():
    # All begin at 0. At 3 client 2 works until 4, and 3 until 9; 0 and 1 begin again, until 6. At 6 client 3 works;
    # 0, 1 and 2 begin, until 8, 9 and 10. 3 is through at 9, when that step has ended. 2 is not through at 12.
    kept = DeadlineOptions(over_selection=2.0, late="kept")
    assert used(kept, 4, participation=0.5) == [
        ([(0, 0), (1, 0)], 3),
        ([(0, 0), (1, 0), (2, 1)], 6),
        ([(0, 0), (1, 0)], 9),
        ([(0, 0), (1, 0), (2, 1), (3, 3)], 12),
    ]
    found = steps(kept, 4, participation=0.5, rounds=4)
    assert [step.held.tolist() for step in found] == [[2, 3], [], [2], []]
    assert [step.busy.tolist() for step in found] == [[2, 3, 0, 0], [2, 3, 4, 0], [2, 3, 0, 0], [2, 3, 4, 9]]
    assert not any(step.wasted.any() for step in found)
    last = steps(kept, 2, participation=0.5, rounds=2)[1]  # 3 works for 6 of its 9 seconds
    assert (last.busy.tolist(), last.wasted.tolist()) == ([2, 3, 4, 6], [0, 0, 0, 6 / 9])


def test_more_clients_than_there_are_cannot_begin():
    assert "participation = 0.75, or over_selection = 1" in DeadlineOptions().misfit(4, 1.0)
    assert not DeadlineOptions().misfit(4, 0.75)
    assert DeadlineOptions(over_selection=9.0).misfit(4, 0.75).endswith("use over_selection = 1.333, or less")
    assert not DeadlineOptions(over_selection=1.333).misfit(4, 0.75)
    assert "size = 4 or less" in BufferedOptions(size=5).misfit(4, 1.0)
    assert not BufferedOptions(size=4).misfit(4, 0.25)


def test_a_buffer_takes_what_comes_next():
    # Whose update waits begins again after the step: 0 ends at 2, 5, 7, 9; 1 at 3, 6; 2 at 4, 9; 3 at 9.
    assert used(BufferedOptions(size=2), 4) == [
        ([(0, 0), (1, 0)], 3),
        ([(0, 0), (2, 1)], 5),
        ([(0, 0), (1, 1)], 7),
        ([(0, 0), (2, 1)], 9),
    ]


def test_updates_are_taken_one_by_one():
    # 0 ends at 2, 4, 6, 8; 1 at 3, 6, 9; 2 at 4, 8; 3 at 9; what ends together goes by number.
    assert used(AsynchronousOptions(), 10) == [
        ([(0, 0)], 2),
        ([(1, 1)], 3),
        ([(0, 1)], 4),
        ([(2, 3)], 4),
        ([(0, 1)], 6),
        ([(1, 3)], 6),
        ([(0, 1)], 8),
        ([(2, 3)], 8),
        ([(1, 2)], 9),
        ([(3, 9)], 9),
    ]


@pytest.mark.parametrize(
    "options",
    [BufferedOptions(size=2), AsynchronousOptions(), DeadlineOptions(over_selection=2.0, late="kept")],
)
def test_whoever_is_used_later_kept_its_model_then(options):
    found, held = steps(options, 40, participation=0.5 if options.drops else 1.0), {}
    for number, step in enumerate(found):
        for client in step.participants.tolist():
            assert step.staleness[client] == number - held.pop(client, number)
        assert not held.keys() & set(step.held.tolist())
        held |= dict.fromkeys(step.held.tolist(), number)
        assert len(held) <= 4


def test_so_many_are_at_work_and_those_that_idle_come_in_turn():
    found = steps(BufferedOptions(size=2), 200, participation=0.5)
    assert max(len(step.held) for step in found) <= 2
    often = np.bincount(np.concatenate([step.participants for step in found]), minlength=4)
    assert (often > 30).all()


@pytest.mark.parametrize(
    "options",
    [
        SynchronousOptions(),
        DeadlineOptions(),
        DeadlineOptions(late="kept"),
        BufferedOptions(size=2),
        AsynchronousOptions(),
    ],
)
def test_steps_do_not_depend_on_where_a_run_goes_on(options):
    everything, rest = (steps(options, number, 0.75, first) for number, first in ((9, 0), (4, 5)))
    for step, again in zip(everything[5:], rest, strict=True):
        assert step.clock == again.clock
        assert step.begin == again.begin
        for name in ("participants", "staleness", "held", "busy", "wasted"):
            assert np.array_equal(getattr(step, name), getattr(again, name))


def test_weights_by_hand():
    fresh, tau = np.array([10.0, 30.0]), np.array([0, 3])
    weights, divisor = BufferedOptions(rate=0.5).weights(fresh, 40.0, tau)
    assert (weights.tolist(), divisor) == ([10, 15], 80)
    assert DeadlineOptions(late="kept").weights(fresh, 40.0, tau)[0].tolist() == [10, 15]
    assert BufferedOptions(staleness="constant").weights(fresh, 40.0, tau)[0].tolist() == [10, 30]
    hinge = AsynchronousOptions(staleness="hinge", start=1, slope=2.0, rate=0.5)
    weights, divisor = hinge.weights(np.array([8.0, 8.0]), 8.0, tau)
    assert (weights.tolist(), divisor) == ([0.5, 0.1], 1)
