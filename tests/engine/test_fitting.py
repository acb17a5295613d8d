"""What of a checkpoint is checked against the run before any of it is used."""

import numpy as np
import pytest

from fedmpi.algorithms.fedopt import FedAdam
from fedmpi.algorithms.gcfl_plus import GcflPlus, GcflPlusOptions
from fedmpi.engine.fitting import StateLayout, refuse_unfit
from fedmpi.store.checkpoint import Unfit

LAYOUTS = [StateLayout(8, 2, 6), StateLayout(11, 3, 9)]
"""Two clients of 2 and 3 parameters with both moments and a step count."""


def states(*changes):
    """Return the states of both clients after 5 steps, with single floats changed."""
    found = np.zeros(19, np.float32)
    found[6], found[17] = 5, 5
    for place, value in changes:
        found[place] = value
    return found


def server(algorithm):
    algorithm.begin(4, 2)
    return {"group": np.zeros(2, np.int64), **algorithm.state()}


FEDOPT = server(FedAdam(FedAdam.Options(name="fedadam")))
PLUS = server(GcflPlus(GcflPlusOptions(length=3)))
SIZES = np.array([8, 11])
WHOLE = {"states": states(), "sizes": SIZES, "group": np.array([0, 1])}


@pytest.mark.parametrize("fresh", [FEDOPT, PLUS])
def test_a_checkpoint_of_this_run_fits(fresh):
    refuse_unfit({**fresh, **WHOLE}, LAYOUTS, fresh)


def test_moments_may_have_overflown_and_the_last_model_may_not_be_there_yet():
    moments, last = states((2, np.inf)), np.concatenate([states(), np.full(2, np.nan, np.float32)])
    refuse_unfit({**FEDOPT, **WHOLE, "states": moments}, LAYOUTS, FEDOPT)
    layouts = [LAYOUTS[0], StateLayout(13, 3, 9)]
    refuse_unfit({**FEDOPT, **WHOLE, "states": last, "sizes": np.array([8, 13])}, layouts, FEDOPT)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"states": states((1, np.nan))}, "parameters of client 0 are not finite"),
        ({"states": states((10, -np.inf))}, "parameters of client 1 are not finite"),
        ({"states": states((6, 2.5))}, "the step count of client 0 is no whole number"),
        ({"states": states((17, np.nan))}, "the step count of client 1 is no whole number"),
        ({"states": states((7, -1.0))}, "the step count of client 0 is no whole number"),
        ({"states": states()[:-1]}, r"its array states is float32 \[18\], this run's float32 \[19\]"),
        ({"states": states().astype(np.float64)}, r"float64 \[19\], this run's float32 \[19\]"),
        ({"sizes": np.array([11, 8])}, "its clients have states of other sizes"),
        ({"group": np.array([0, 2])}, "its groups have numbers that cannot be"),
        ({"group": np.array([-1, 0])}, "its groups have numbers that cannot be"),
        ({"group": np.zeros(3, np.int64)}, r"its array group is int64 \[3\]"),
        ({"server_first": np.zeros(5)}, r"its array server_first is float64 \[5\]"),
        ({"server_second": np.array([0, 0, np.nan, 0])}, "its array server_second is not finite"),
        ({"more": np.zeros(1)}, r"other arrays than this run's \(more\)"),
    ],
)
def test_anything_else_is_refused(change, words):
    with pytest.raises(Unfit, match=words):
        refuse_unfit({**FEDOPT, **WHOLE, **change}, LAYOUTS, FEDOPT)


def test_an_array_that_is_missing_or_renamed_is_refused():
    with pytest.raises(Unfit, match=r"other arrays than this run's \(server_first, server_second\)"):
        refuse_unfit(WHOLE, LAYOUTS, FEDOPT)
    with pytest.raises(Unfit, match=r"\(states, statez\)"):
        renamed = {name.replace("states", "statez"): array for name, array in WHOLE.items()}
        refuse_unfit({**FEDOPT, **renamed}, LAYOUTS, FEDOPT)


def test_a_sequence_may_have_gaps_but_no_infinity():
    table = np.array([[1.0, np.nan, np.nan], [1.0, 2.0, np.inf]])
    with pytest.raises(Unfit, match="its array sequences is not finite"):
        refuse_unfit({**PLUS, **WHOLE, "sequences": table}, LAYOUTS, PLUS)
    table[1, 2] = 3.0
    refuse_unfit({**PLUS, **WHOLE, "sequences": table}, LAYOUTS, PLUS)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [(9, np.nan, "parameters of client 0 are not finite"), (14, 2.5, "the step count of client 0 is no")],
)
def test_a_personal_model_is_checked_like_the_clients_other_model(place, value, words):
    layouts, found = [StateLayout(16, 2, 6, models=2)], np.zeros(16, np.float32)
    arrays = {"states": found, "sizes": np.array([16]), "group": np.zeros(1, np.int64)}
    refuse_unfit(arrays, layouts, {"group": np.zeros(1, np.int64)})
    found[place] = value
    with pytest.raises(Unfit, match=words):
        refuse_unfit(arrays, layouts, {"group": np.zeros(1, np.int64)})
