"""How long a rank sleeps between looks at a barrier."""

import pytest

from fedmpi.comm.collectives import blind_sleep, nap


def test_short_waits_are_looked_at_from_the_start():
    assert blind_sleep(0.0) == 0.0
    assert blind_sleep(0.002) == 0.0


def test_the_first_sleep_is_nearly_the_expected_wait_but_never_long():
    assert blind_sleep(0.05) == pytest.approx(0.0445)
    assert blind_sleep(400.0) == 0.1


def test_looks_are_frequent_when_the_barrier_is_due_and_rarer_when_it_is_late():
    assert nap(0.047, 0.05) == pytest.approx(50e-6)
    assert nap(0.103, 0.05) == pytest.approx(375e-6)
    assert nap(5.0, 0.05) == pytest.approx(0.05)


def test_a_wait_that_is_expected_to_be_long_costs_few_looks_and_a_hundredth_of_it():
    assert nap(0.1, 10.0) == pytest.approx(1e-3)
    assert nap(5.0, 10.0) == pytest.approx(0.05)
