"""GCFL, GCFL+ and GCFL+dWs on hand-made updates with known splits."""

import numpy as np
import pytest
from pydantic import ValidationError

from fedmpi.algorithms.clustered import minimum_cut
from fedmpi.algorithms.gcfl import GcflOptions
from fedmpi.algorithms.gcfl_plus import GcflPlusDws, GcflPlusOptions
from fedmpi.exchange.planning import REQUESTS
from tests.algorithms.programs import begin, named, round_of

WILLING = {"warmup": 0, "smallest": 1, "eps1": 1e9, "eps2": 0.0}
"""Options with which a group splits in any round."""


def rows(*values):
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("updates", "groups"),
    [
        ([[1, 0], [1, 0.1], [-1, 0], [-1, 0.1]], [0, 0, 1, 1]),  # opposite ones are cut apart
        ([[1, 0], [1, 0.1], [0.1, -1], [1, -0.1]], [0, 0, 1, 0]),  # an outlier leaves alone
        ([[1, 0], [0, 1]], [0, 1]),
        ([[0, 0], [1, 0], [1, 0]], [0, 1, 1]),  # zero is similar to nothing
        ([None, [1, 0], [-1, 0], [-1, 0.1]], [0, 0, 1, 1]),  # who sat out stays with the first part
    ],
)
def test_a_group_is_cut_by_the_cosines_of_its_updates(updates, groups):
    found = round_of(named("gcfl", **WILLING), updates)
    assert found.groups == groups
    known = [update is not None for update in updates]
    weights = found.decided.recorded["split_weights"]
    assert np.array_equal(np.isfinite(weights), np.outer(known, known))


def test_an_edge_is_a_cosine_plus_1():
    weights = named("gcfl").edges(np.arange(4), rows([1, 0], [1, 0.1], [-1, 0], [-1, 0.1]))
    assert np.allclose(weights[0], [2, 1 + 1 / np.sqrt(1.01), 0, 1 - 1 / np.sqrt(1.01)])


def test_ties_are_settled_the_same_way_every_time():
    same = rows([1, 0], [1, 0], [1, 0])
    divisions = {tuple(round_of(named("gcfl", **WILLING), same).groups) for _ in range(20)}
    assert len(divisions) == 1
    assert sorted(set(divisions.pop())) == [0, 1]


@pytest.mark.parametrize(
    "weights",
    [
        named("gcfl").edges(np.arange(3), rows([0, 0], [0, 0], [0, 0])),
        np.array([[0, -1e-12, 1], [-1e-12, 0, 1], [1, 1, 0.0]]),  # below zero by rounding: counts as zero
    ],
)
def test_a_cut_has_two_sides(weights):
    first, second = minimum_cut(weights)
    assert min(len(first), len(second)) > 0
    assert sorted([*first.tolist(), *second.tolist()]) == [0, 1, 2]


def candidates(algorithm, norms, round=30, group=None):
    """Return the groups whose mean is asked for when clients have updates of these norms; NaN: none."""
    deltas = [None if np.isnan(norm) else [norm] for norm in norms]
    found = round_of(algorithm, deltas, group=group, number=round)
    return np.flatnonzero(found.asked[0].marks).tolist() if found.asked else []


NAN = float("nan")


@pytest.mark.parametrize(
    ("norms", "more", "expected"),
    [
        ([0.1, 0.6, 0.1], {}, [0]),
        ([0.1, 0.4, 0.1], {}, []),
        ([0.1, 0.6], {}, []),
        ([0.1, 0.6, 0.1], {"round": 19}, []),
        ([0.1, 0.6, 0.1], {"round": 20}, [0]),
        ([0.9, 0.9, 0.9, 0.6, 0.6], {"group": [0, 0, 0, 1, 1]}, [0]),
        ([0.6, NAN, NAN], {}, []),  # one client trained
        ([0.6, NAN, 0.1], {}, [0]),
    ],
)
def test_only_large_groups_with_a_long_update_past_the_warm_up_may_split(norms, more, expected):
    assert candidates(named("gcfl", eps2=0.5), norms, **more) == expected


def test_protocols_set_what_the_paper_and_the_code_say():
    released, paper = GcflOptions(), GcflOptions(protocol="paper")
    own = [(each.criterion, each.combine, each.warmup, each.smallest) for each in (released, paper)]
    assert own == [("plain", "average", 20, 2), ("weighted", "sum", 0, 1)]
    assert GcflOptions(protocol="paper", warmup=7).warmup == 7
    assert GcflPlusOptions().sequence == "gradient"
    assert GcflPlusOptions(protocol="paper").sequence == "delta"
    assert GcflPlusDws.Options().sequence == "delta"
    with pytest.raises(ValidationError):
        GcflOptions(protocol="papr")


def test_the_papers_update_adds_the_sum():
    model, mean = np.array([1.0], np.float32), np.array([0.5])
    assert named("gcfl", protocol="paper").update(model, mean, 4).tolist() == [3.0]
    assert named("gcfl").update(model, mean, 4).tolist() == [1.5]
    assert named("gcfl", protocol="paper").weights(np.array([5, 7])).tolist() == [1, 1]


def plus(num_clients=3, **options):
    algorithm = named("gcfl-plus", **options)
    begin(algorithm, 10, num_clients)
    return algorithm


def feed(algorithm, *rounds):
    """Run rounds in which gradients have these norms and updates ten times these; return the last."""
    for norms in rounds:
        deltas = [None if np.isnan(norm) else [10 * norm] for norm in norms]
        found = round_of(algorithm, deltas, gradient_norm=norms)
    return found


def test_gcfl_plus_waits_until_every_client_has_a_whole_sequence():
    algorithm = plus(length=2, eps2=0.0)
    assert candidates(algorithm, [1.0, 1.0, np.nan]) == []
    assert candidates(algorithm, [1.0, 1.0, 1.0]) == []
    assert candidates(algorithm, [1.0, 1.0, 1.0]) == [0]


def test_gcfl_plus_cuts_by_warped_sequences():
    found = feed(plus(4, length=3, **WILLING), [1, 1, 9, 9], [2, 2, 8, 8], [3, 3, 7, 7.0])
    weights = found.decided.recorded["split_weights"]
    assert found.groups == [0, 0, 1, 1]
    assert weights[0, 1] == weights.max()
    # Warping matches 3 with 7 three times: 4, and on the way 5 and 6 or longer.
    assert np.isclose(weights[0, 1] - weights[0, 2], np.sqrt(8**2 + 6**2 + 4**2))


def test_sequences_are_of_gradients_or_of_updates():
    for sequence, factor in (("gradient", 1), ("delta", 10)):
        algorithm = plus(sequence=sequence, length=2)
        feed(algorithm, [1, 2, 3], [4, 5, 6.0])
        assert np.array_equal(algorithm.server["sequences"], factor * np.array([[1, 4], [2, 5], [3, 6]]))


def test_sequences_are_cleared_by_the_released_code_and_kept_by_the_paper():
    for protocol, left in (("released-code", 0), ("paper", 2)):
        algorithm = plus(protocol=protocol, length=2, **WILLING)
        feed(algorithm, [1, 2, 3], [4, 5, 6.0])
        assert int(np.isfinite(algorithm.server["sequences"][0]).sum()) == left


def test_sequences_stay_in_a_round_without_a_split():
    algorithm = plus(length=2, **{**WILLING, "eps1": 0.0})
    assert feed(algorithm, [1, 2, 3], [4, 5, 6.0]).groups == [0, 0, 0]
    assert np.isfinite(algorithm.server["sequences"]).all()


def test_standardising_a_constant_sequence_gives_no_nan():
    algorithm = plus(length=3, standardise=True, **WILLING)
    found = feed(algorithm, [5, 1, 2], [5, 2, 4], [5, 3, 6.0])
    assert np.isfinite(found.decided.recorded["split_weights"]).all()
    assert found.groups == [0, 1, 1]  # 1 2 3 and 2 4 6 are the same in units of their deviation


def test_a_short_mean_splits_a_group_and_a_long_one_does_not():
    options = {"eps1": 0.1, "warmup": 0}
    opposed = round_of(named("gcfl", **options), rows([1, 0], [1, 0], [-1, 0], [-1, 0]))
    assert opposed.groups == [0, 0, 1, 1]
    assert opposed.decided.recorded["delta_mean"].tolist() == [0.0] * 4
    agreed = round_of(named("gcfl", **options), rows([1, 0], [1, 0], [1, 0.1], [1, 0]))
    assert agreed.groups == [0, 0, 0, 0]
    assert 0.9 < agreed.decided.recorded["delta_mean"][0] < 1.1


def test_the_criterions_mean_is_plain_in_the_code_and_weighted_in_the_paper():
    opposed, samples = rows([1, 0], [-1, 0], [0, 0]), [3, 1, 4]
    plain = round_of(named("gcfl", warmup=0), opposed, samples=samples)
    weighted = round_of(named("gcfl", protocol="paper"), opposed, samples=samples)
    assert plain.decided.recorded["delta_mean"].tolist() == [0.0] * 3
    assert weighted.decided.recorded["delta_mean"].tolist() == [0.25] * 3


def test_running_statistics_are_no_part_of_the_criterion():
    found = round_of(named("gcfl", warmup=0), rows([1, 9], [-1, 9], [0, 9]), trained=1)
    assert found.decided.recorded["delta_mean"].tolist() == [0.0] * 3


def test_two_groups_may_split_in_one_round_and_numbers_stay_unique():
    deltas = rows([1, 0], [1, 0], [-2, 0], [0, 1], [0, 1], [0, -2])
    found = round_of(named("gcfl", eps1=0.5, warmup=0), deltas, group=[0, 0, 0, 1, 1, 1])
    assert found.groups == [0, 0, 2, 1, 1, 3]
    deltas[5] *= -1  # then the second group is not cut, and none of its updates travels
    found = round_of(named("gcfl", eps1=0.5, warmup=0), deltas, group=[0, 0, 0, 1, 1, 1])
    asked = [(REQUESTS[plan.request], np.flatnonzero(plan.marks).tolist()) for plan in found.asked]
    assert asked == [("means", [0, 1]), ("parameters", [0, 1, 2])]


def test_gcfl_plus_asks_for_no_update():
    found = feed(plus(length=2, **WILLING), [1, 2, 3], [1, 2, 3.0])
    assert [REQUESTS[plan.request] for plan in found.asked] == ["means"]


def test_both_sides_of_the_criterion_are_recorded_by_the_group_before_a_split():
    found = round_of(
        named("gcfl", **WILLING), rows([1, 0], [-3, 0], [0, 2]), group=[0, 0, 1]
    ).decided.recorded
    assert found["delta_max"].tolist() == [3.0, 3.0, 2.0]
    np.testing.assert_array_equal(found["delta_mean"], [1.0, 1.0, np.nan])
    assert np.isfinite(found["split_weights"]).tolist() == [[True, True, False]] * 2 + [[False] * 3]


def test_a_round_in_which_nothing_may_split_has_no_mean_and_no_weights():
    found = round_of(named("gcfl"), rows([1, 0], [-3, 0], [0, 2])).decided.recorded
    assert found["delta_max"].tolist() == [3.0] * 3
    assert np.isnan(found["delta_mean"]).all() and np.isnan(found["split_weights"]).all()


def test_the_weights_of_more_than_256_clients_are_not_recorded():
    found = round_of(named("gcfl"), np.ones((257, 1), np.float32))
    assert found.decided.recorded.keys() == {"delta_mean", "delta_max"}
