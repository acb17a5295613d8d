"""GCFL, GCFL+ and GCFL+dWs on hand-made updates with known splits."""

import numpy as np
import pytest
from pydantic import ValidationError

from fedmpi.algorithms.clustered import minimum_cut
from fedmpi.algorithms.gcfl import Gcfl, GcflOptions, cosine
from fedmpi.algorithms.gcfl_plus import GcflPlus, GcflPlusDws, GcflPlusOptions
from fedmpi.case.reductions import ExactOptions
from fedmpi.comm import reductions
from fedmpi.comm.world import World
from fedmpi.exchange.aggregation import Plain, Rows
from fedmpi.exchange.buffers import Buffers
from fedmpi.exchange.group_models import RoundPlan
from fedmpi.exchange.splitting import Splitter
from fedmpi.programs.alike import copied
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from tests.algorithms.programs import begin


def rows(*values):
    return np.array(values, np.float32)


def parts(division):
    return [part.tolist() for part in division.parts]


def gcfl(**options):
    return Gcfl(GcflOptions(**options))


def test_cosines_of_hand_made_updates():
    assert np.allclose(cosine(rows([2, 0], [0, 3], [-1, 0])), [[1, 0, -1], [0, 1, 0], [-1, 0, 1]])


def test_opposite_updates_are_cut_apart():
    division = gcfl().split(np.array([3, 5, 7, 9]), rows([1, 0], [1, 0.1], [-1, 0], [-1, 0.1]))
    assert parts(division) == [[3, 5], [7, 9]]
    assert division.weights.shape == (4, 4)


def test_an_outlier_leaves_alone():
    division = gcfl().split(np.array([0, 1, 2, 3]), rows([1, 0], [1, 0.1], [0.1, -1], [1, -0.1]))
    assert parts(division) == [[0, 1, 3], [2]]


def test_a_cluster_of_two_is_divided_if_it_may_be():
    assert parts(gcfl().split(np.array([4, 8]), rows([1, 0], [0, 1]))) == [[4], [8]]


def test_ties_are_settled_the_same_way_every_time():
    same = rows([1, 0], [1, 0], [1, 0])
    divisions = {str(parts(gcfl().split(np.array([0, 1, 2]), same))) for _ in range(20)}
    assert len(divisions) == 1
    assert sorted(client for part in parts(gcfl().split(np.array([0, 1, 2]), same)) for client in part) == [
        0,
        1,
        2,
    ]


def test_zero_updates_are_similar_to_nothing_and_give_no_nan():
    division = gcfl().split(np.array([0, 1, 2]), rows([0, 0], [1, 0], [1, 0]))
    assert np.isfinite(division.weights).all()
    assert parts(division) == [[0], [1, 2]]


def test_weights_below_zero_by_rounding_count_as_zero():
    first, second = minimum_cut(np.array([[0, -1e-12, 1], [-1e-12, 0, 1], [1, 1, 0.0]]))
    assert sorted([*first.tolist(), *second.tolist()]) == [0, 1, 2]


def candidates(algorithm, norms, round=30, group=None):
    group = np.zeros(len(norms), np.int64) if group is None else np.array(group)
    reports = {"delta_norm": np.array(norms), "gradient_norm": np.array(norms)}
    return algorithm.split_candidates(round, group, reports)


def test_only_large_groups_with_a_long_update_past_the_warm_up_may_split():
    algorithm = gcfl(eps2=0.5)
    assert candidates(algorithm, [0.1, 0.6, 0.1]) == [0]
    assert candidates(algorithm, [0.1, 0.4, 0.1]) == []
    assert candidates(algorithm, [0.1, 0.6]) == []
    assert candidates(algorithm, [0.1, 0.6, 0.1], round=19) == []
    assert candidates(algorithm, [0.1, 0.6, 0.1], round=20) == [0]
    assert candidates(algorithm, [0.9, 0.9, 0.9, 0.6, 0.6], group=[0, 0, 0, 1, 1]) == [0]


def test_a_group_of_which_one_client_trained_does_not_split():
    algorithm = gcfl(eps2=0.5)
    nan = float("nan")
    assert candidates(algorithm, [0.6, nan, nan]) == []
    assert candidates(algorithm, [0.6, nan, 0.1]) == [0]


def test_protocols_set_what_the_paper_and_the_code_say():
    released, paper = GcflOptions(), GcflOptions(protocol="paper")
    assert (released.criterion, released.combine, released.warmup, released.smallest) == (
        "plain",
        "average",
        20,
        2,
    )
    assert (paper.criterion, paper.combine, paper.warmup, paper.smallest) == ("weighted", "sum", 0, 1)
    assert GcflOptions(protocol="paper", warmup=7).warmup == 7
    assert GcflPlusOptions().sequence == "gradient"
    assert GcflPlusOptions(protocol="paper").sequence == "delta"
    assert GcflPlusDws.Options().sequence == "delta"
    with pytest.raises(ValidationError):
        GcflOptions(protocol="papr")


def test_the_papers_update_adds_the_sum():
    model, mean = np.array([1.0], np.float32), np.array([0.5])
    assert gcfl(protocol="paper").update(model, mean, 4).tolist() == [3.0]
    assert gcfl().update(model, mean, 4).tolist() == [1.5]
    assert gcfl(protocol="paper").weights(np.array([5, 7])).tolist() == [1, 1]


def plus(num_clients=3, **options):
    algorithm = GcflPlus(GcflPlusOptions(**options))
    begin(algorithm, 10, num_clients)
    return algorithm


def feed(algorithm, *rounds):
    for norms in rounds:
        algorithm.observe({"gradient_norm": np.array(norms), "delta_norm": 10 * np.array(norms)})


def test_gcfl_plus_waits_until_every_client_has_a_whole_sequence():
    algorithm = plus(length=2, eps2=0.0)
    feed(algorithm, [1.0, 1.0, np.nan], [1.0, 1.0, 1.0])
    assert candidates(algorithm, [1.0, 1.0, 1.0]) == []
    feed(algorithm, [1.0, 1.0, 1.0])
    assert candidates(algorithm, [1.0, 1.0, 1.0]) == [0]


def test_gcfl_plus_cuts_by_warped_sequences():
    algorithm = plus(4, length=3)
    feed(algorithm, [1, 1, 9, 9], [2, 2, 8, 8], [3, 3, 7, 7.0])
    division = algorithm.split(np.arange(4), np.empty((4, 0), np.float32))
    assert parts(division) == [[0, 1], [2, 3]]
    assert division.weights[0, 1] == division.weights.max()
    # Warping matches 3 with 7 three times: 4, and on the way 5 and 6 or longer.
    assert np.isclose(division.weights[0, 1] - division.weights[0, 2], np.sqrt(8**2 + 6**2 + 4**2))


def test_sequences_are_cleared_by_the_released_code_and_kept_by_the_paper():
    for protocol, left in (("released-code", 0), ("paper", 2)):
        algorithm = plus(protocol=protocol, length=2)
        feed(algorithm, [1, 2, 3], [1, 2, 3], [4, 5, 6.0])
        algorithm.after_splits()
        assert int(np.isfinite(algorithm.server["sequences"][0]).sum()) == left


def test_standardising_a_constant_sequence_gives_no_nan():
    algorithm = plus(length=3, standardise=True)
    feed(algorithm, [5, 1, 2], [5, 2, 4], [5, 3, 6.0])
    division = algorithm.split(np.arange(3), np.empty((3, 0), np.float32))
    assert np.isfinite(division.weights).all()
    assert parts(division) == [[0], [1, 2]]  # 1 2 3 and 2 4 6 are the same in units of their deviation


def test_the_sequences_survive_a_checkpoint():
    first = plus(length=2)
    feed(first, [1, np.nan, 3], [4, 5, 6.0])
    again = plus(length=2)
    again.server = copied(first.server)
    assert np.array_equal(again.server["sequences"], first.server["sequences"], equal_nan=True)
    feed(first, [7, 8, 9.0])
    feed(again, [7, 8, 9.0])
    assert np.array_equal(again.server["sequences"], first.server["sequences"])


def split(algorithm, deltas, samples, group=None, candidates=(0,)):
    count = len(deltas)
    group = np.zeros(count, np.int64) if group is None else np.array(group)
    exponents = np.array([reductions.weighted_exponent(d, n) for d, n in zip(deltas, samples, strict=True)])
    exponent = np.full(count, reductions.ZERO_EXPONENT)
    np.maximum.at(exponent, group, exponents)
    flags = np.isin(np.arange(count), candidates).astype(np.int64)
    collectives, hosts, size = World().collectives, np.zeros(count, np.int64), deltas.shape[1]
    plain, gathered = (
        Plain(collectives, hosts, ExactOptions(), size, Buffers()),
        Rows(collectives, hosts, size),
    )
    splitter = Splitter(
        collectives, plain, gathered, Hooks(algorithm, count, Position()).splits, np.array(samples)
    )
    plan = RoundPlan(group, exponent, flags, -1, -1, False, False)
    return splitter.run(plan, np.arange(count), dict(enumerate(deltas)), exponents)


def test_a_short_mean_splits_a_group_and_a_long_one_does_not():
    opposed = rows([1, 0], [1, 0], [-1, 0], [-1, 0])
    plan, findings = split(gcfl(eps1=0.1), opposed, [1, 1, 1, 1])
    assert plan.group.tolist() == [0, 0, 1, 1]
    assert findings.delta_mean == {0: 0.0}
    agreed = rows([1, 0], [1, 0], [1, 0.1], [1, 0])
    plan, findings = split(gcfl(eps1=0.1), agreed, [1, 1, 1, 1])
    assert plan.group.tolist() == [0, 0, 0, 0]
    assert 0.9 < findings.delta_mean[0] < 1.1


def test_the_criterions_mean_is_plain_in_the_code_and_weighted_in_the_paper():
    opposed, samples = rows([1, 0], [-1, 0], [0, 0]), [3, 1, 4]
    assert split(gcfl(), opposed, samples)[1].delta_mean == {0: 0.0}
    assert split(gcfl(protocol="paper"), opposed, samples)[1].delta_mean == {0: 0.25}


def test_two_groups_may_split_in_one_round_and_numbers_stay_unique():
    deltas = rows([1, 0], [1, 0], [-2, 0], [0, 1], [0, 1], [0, -2])
    plan, _ = split(gcfl(eps1=0.5), deltas, [1] * 6, group=[0, 0, 0, 1, 1, 1], candidates=(0, 1))
    assert plan.group.tolist() == [0, 0, 2, 1, 1, 3]


def test_identical_and_zero_updates_split_without_an_error():
    plan, _ = split(gcfl(eps1=0.5), rows([0, 0], [0, 0], [0, 0]), [1, 1, 1])
    assert len(set(plan.group.tolist())) == 2
