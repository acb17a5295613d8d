"""Who stands still, for how long, and what becomes of it."""

import time
from dataclasses import dataclass

import pytest

from fedmpi.errors import Interrupted, RankFailed
from fedmpi.programs.position import Position
from fedmpi.runs import watchdog
from fedmpi.runs.signals import StopRequest
from fedmpi.runs.watchdog import Silence, Watchdog


@dataclass
class OneOfThree:
    """What the watchdog asks of the world."""

    rank: int = 2
    size: int = 3


INSIDE, HERE = Position(("odd.penalty",), "train", 1, 0), Position(None, "train", 1, 0)
AGAIN = [Position((hook,), "train", 1, 0) for hook in 3 * ["odd.penalty"]]


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        # a hook that does not return is silent though it computes, one that is called again is not
        ([(INSIDE, 1.0, 1.0), (INSIDE, 1.0, 2.0), (INSIDE, 0.5, 2.5)], [0.0, 1.0, 1.5]),
        ([(each, 1.0, 0.0) for each in AGAIN], [0.0, 0.0, 0.0]),
        # outside of hooks a rank moves on while it computes, or waits for others
        ([(HERE, 1.0, 1.0), (HERE, 1.0, 1.5), (HERE, 1.0, 1.5)], [0.0, 0.0, 1.0]),
        *(([(Position(None, phase, 1), 1.0, 0.0)] * 2, [0.0, 0.0]) for phase in ("wait", "communicate", "")),
        # time in which the process was stopped does not count
        ([(INSIDE, 1.0, 0.0), (INSIDE, 3600.0, 0.0)], [0.0, 2.0]),
    ],
)
def test_seconds_of_silence_after_each_look(looks, expected):
    silence = Silence()
    assert [silence.look(*each) for each in looks] == expected


@pytest.fixture
def hasty(monkeypatch):
    for name in ("GRACE_S", "_LOOK_S"):
        monkeypatch.setattr(watchdog, name, 0.1)


def test_a_silent_rank_ends_with_its_place():
    where = Position(("odd.penalty",), "train", 4, 1, ("MUTAG", "PROTEINS"))
    words = r"rank 2 has been in odd.penalty for 0 s \(round 5, client PROTEINS\); watchdog_seconds = 0.2"
    with pytest.raises(RankFailed, match=words), Watchdog(where, 0.2, StopRequest(), OneOfThree()):
        time.sleep(60)


def test_a_silent_rank_that_was_asked_to_stop_is_interrupted(hasty):
    stop, where = StopRequest(), Position(("odd.penalty",), "train", 4)
    stop.requested = True
    raises = pytest.raises(Interrupted, match=r"stopped by a signal: rank 2 has been in odd.penalty")
    with raises as ended, Watchdog(where, 0.0, stop, OneOfThree()):
        time.sleep(60)
    assert not ended.value.agreed


def test_a_slow_disk_does_not_end_a_rank_that_was_asked_to_stop(hasty):
    stop, where = StopRequest(), Position(None, "record", 4)
    stop.requested = True
    with Watchdog(where, 0.0, stop, OneOfThree()):
        time.sleep(0.5)


def test_a_rank_that_writes_into_the_run_folder_is_ended_after_that(monkeypatch):
    monkeypatch.setattr(watchdog, "_DEAF_S", 30.0)
    monkeypatch.setattr(watchdog, "_TRIES", 300)
    where, wrote = Position(("odd.penalty",), "train", 4, 0, ("MUTAG",), writing=True), False
    with pytest.raises(RankFailed), Watchdog(where, 0.1, StopRequest(), OneOfThree()):
        time.sleep(0.5)
        where.writing, wrote = False, True
        time.sleep(60)
    assert wrote


def test_a_second_term_does_not_wait_for_the_round(hasty):
    stop = StopRequest()
    stop.requested, stop._since = True, time.monotonic() - 2
    raises = pytest.raises(Interrupted, match="stopped by a second signal: rank 2 has been in phase wait")
    with raises, Watchdog(Position(None, "wait", 4), 0.0, stop, OneOfThree()):
        stop._note(15, None)
        time.sleep(60)


def test_a_launcher_that_forwards_term_twice_is_heard_once():
    stop = StopRequest()
    stop._note(15, None)
    stop._note(15, None)
    assert (stop.requested, stop.insisted) == (True, False)


def test_a_watchdog_leaves_no_trace():
    with Watchdog(Position(), 0.1, StopRequest(), OneOfThree()):
        time.sleep(0.3)
