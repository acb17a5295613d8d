"""How long a rank sleeps between looks at a call."""

import pytest

from fedmpi.comm.waiting import nap


def looks(wait: float, expected: float) -> list[float]:
    """Return when a rank that sleeps as long as it is told looks at a call that ends after `wait` seconds."""
    times = [0.0]
    while times[-1] < wait:
        times.append(times[-1] + nap(times[-1], expected))
    return times


def test_short_waits_are_looked_at_from_the_start_and_of_long_ones_half_is_slept():
    for expected, asleep in ((0.0, 50e-6), (0.002, 0.96e-3), (0.05, 0.024), (400.0, 0.1)):
        assert nap(0.0, expected) == pytest.approx(asleep)


def test_looks_are_frequent_when_the_call_is_due_and_rarer_when_it_is_late():
    assert nap(0.049, 0.05) == pytest.approx(0.05 / 256)
    assert nap(0.103, 0.05) == pytest.approx(375e-6)
    assert nap(5.0, 0.05) == pytest.approx(0.05)


@pytest.mark.parametrize("expected", [0.01, 0.05, 0.25, 2.0])
def test_a_wait_as_expected_costs_few_looks_and_little_of_its_length(expected):
    times = looks(expected, expected)
    assert len(times) < 30 + 50 * expected  # a look per millisecond of its last part
    assert times[-1] - expected < min(max(expected / 200, 60e-6), 1.1e-3)


@pytest.mark.parametrize("wait", [0.3, 3.0, 30.0])
def test_a_wait_far_from_what_was_expected_is_noticed_in_time(wait):
    for expected in (wait / 50, wait * 50):
        assert looks(wait, expected)[-1] - wait < max(0.02 * wait, 0.101)


def test_who_is_patient_looks_seldom():
    assert nap(0.0, 0.0, 1e-3) == pytest.approx(1e-3)
    assert nap(0.004, 0.005, 1e-3) == pytest.approx(1e-3)
    assert nap(0.0, 0.05, 1e-3) == pytest.approx(0.024)
