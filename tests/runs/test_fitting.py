"""What of a checkpoint is checked against the run before any of it is used."""

import numpy as np
import pytest

from fedmpi.algorithms.fedopt import FedAdam
from fedmpi.client.state import StateLayout
from fedmpi.runs.fitting import refuse_unfit_server, refuse_unfit_states
from fedmpi.store.checkpoint import Unfit
from tests.algorithms.programs import named

LAYOUTS = {0: StateLayout(8, 2, (6,)), 1: StateLayout(11, 3, (9,))}
"""Two clients of 2 and 3 parameters with both moments and a step count."""


def state(size, steps, *changes):
    """Return a state after 5 steps, with single floats changed."""
    found = np.zeros(size, np.float32)
    found[steps] = 5
    for place, value in changes:
        found[place] = value
    return found


def server(algorithm):
    return {"group": np.zeros(2, np.int64), **algorithm.server_memory(4, 2)}


FEDOPT = server(FedAdam(FedAdam.Options(name="fedadam")))
PLUS = server(named("gcfl-plus", length=3))


def test_what_is_of_this_run_fits():
    """A rank has the states of its clients; moments may have overflown, a last model may not be there yet."""
    for fresh in (FEDOPT, PLUS):
        refuse_unfit_server({**fresh, "group": np.array([0, 1])}, fresh)
    last = np.concatenate([state(11, 9), np.full(2, np.nan, np.float32)])
    refuse_unfit_states({0: state(8, 6), 1: state(11, 9)}, LAYOUTS)
    refuse_unfit_states({1: state(11, 9)}, LAYOUTS)
    refuse_unfit_states({0: state(8, 6, (2, np.inf))}, LAYOUTS)
    refuse_unfit_states({1: last}, {1: StateLayout(13, 3, (9,))})


@pytest.mark.parametrize(
    ("client", "wrong", "words"),
    [
        (0, state(8, 6, (1, np.nan)), "parameters of client 0 are not finite"),
        (1, state(11, 9, (2, -np.inf)), "parameters of client 1 are not finite"),
        (0, state(8, 6, (6, 2.5)), "the step count of client 0 is no whole number"),
        (1, state(11, 9, (9, np.nan)), "the step count of client 1 is no whole number"),
        (0, state(8, 6, (7, -1.0)), "the step count of client 0 is no whole number"),
        (1, state(10, 9), r"the state of client 1 is float32 \[10\], this run's float32 \[11\]"),
        (1, state(11, 9).astype(np.float64), r"float64 \[11\], this run's float32 \[11\]"),
    ],
)
def test_another_state_is_refused(client, wrong, words):
    with pytest.raises(Unfit, match=words):
        refuse_unfit_states({0: state(8, 6), 1: state(11, 9), client: wrong}, LAYOUTS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"group": np.array([0, 2])}, "its groups have numbers outside of 0"),
        ({"group": np.array([-1, 0])}, "its groups have numbers outside of 0"),
        ({"group": np.zeros(3, np.int64)}, r"its array group is int64 \[3\]"),
        ({"server_first": np.zeros(5)}, r"its array server_first is float64 \[5\]"),
        ({"server_second": np.array([0, 0, np.nan, 0])}, "its array server_second is not finite"),
        ({"more": np.zeros(1)}, r"other arrays than this run's \(more\)"),
    ],
)
def test_another_server_is_refused(change, words):
    with pytest.raises(Unfit, match=words):
        refuse_unfit_server({**FEDOPT, **change}, FEDOPT)


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({"group": FEDOPT["group"]}, r"other arrays than this run's \(server_first, server_second\)"),
        ({name.replace("group", "groups"): array for name, array in FEDOPT.items()}, r"\(group, groups\)"),
    ],
)
def test_an_array_that_is_missing_or_renamed_is_refused(stored, words):
    with pytest.raises(Unfit, match=words):
        refuse_unfit_server(stored, FEDOPT)


def test_a_sequence_may_have_gaps_but_no_infinity():
    table = np.array([[1.0, np.nan, np.nan], [1.0, 2.0, np.inf]])
    with pytest.raises(Unfit, match="its array sequences is not finite"):
        refuse_unfit_server({**PLUS, "sequences": table}, PLUS)
    table[1, 2] = 3.0
    refuse_unfit_server({**PLUS, "sequences": table}, PLUS)


def test_the_step_counts_of_further_moments_are_checked():
    layouts, found = {0: StateLayout(16, 2, (6, 14))}, np.zeros(16, np.float32)
    refuse_unfit_states({0: found}, layouts)
    found[14] = 2.5
    with pytest.raises(Unfit, match="the step count of client 0 is no whole number"):
        refuse_unfit_states({0: found}, layouts)
