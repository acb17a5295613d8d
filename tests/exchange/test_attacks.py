"""What attackers send, by hand; who they are; what is refused."""

from itertools import product

import numpy as np
import pytest

from fedmpi.case.attacks import Colluding, LabelFlip, Noise, SignFlip
from fedmpi.client.federation import poisoned
from fedmpi.comm.world import World
from fedmpi.exchange.attacks import Attackers, refuse_unfit
from fedmpi.graphs.packed import GraphSet
from tests.exchange.exchanged import case_of, reported, updates_of
from tests.refusals import refused


def struck(attack, *deltas, round=0, size=2, received=None):
    """Let the attackers of three clients act on updates of some parameters and a statistic."""
    updates = updates_of(*deltas, size=size, received=received)
    attackers = Attackers(case_of(attack=attack), np.zeros(3, np.int64), World().collectives, size)
    attackers.alter(round, np.arange(3), updates)
    return updates


def sent(*arguments, **more):
    return [delta.tolist() for delta in struck(*arguments, **more).trained.deltas.values()]


def test_a_flipped_sign_is_scaled_and_reported_and_leaves_statistics_alone():
    flips = {"name": "sign-flip", "scale": 3.0, "clients": [1]}
    found = struck(flips, [1, 2, 9], [3, 4, 9], [5, 6, 9])
    assert [delta.tolist() for delta in found.trained.deltas.values()] == [[1, 2, 9], [-9, -12, 9], [5, 6, 9]]
    assert reported(found, "delta_norm") == [1, 15, 1]
    assert reported(found, "exponent") == [1, 4, 1]  # |-12| < 2^4


def test_colluders_send_the_same_vector():
    attack = {"name": "colluding", "scale": 2.0, "clients": [0, 2]}
    assert sent(attack, [1, 2, 9], [3, 4, 8], [5, 8, 7]) == [[-6, -10, 9], [3, 4, 8], [-6, -10, 7]]


def test_noise_has_the_length_that_the_scale_says():
    size = 20_000
    attack = {"name": "noise", "scale": 10.0, "clients": [0]}
    added = struck(attack, np.full(size, 0.5), size=size).trained.deltas[0].astype(float) - 0.5
    assert abs(added.std() / 5 - 1) < 0.02
    assert abs(added.mean()) < 0.15
    assert len(np.unique(added)) > 0.99 * size


def test_where_models_are_sent_the_change_is_flipped_and_not_the_model():
    model = np.array([10, 10, 0], np.float32)
    flips = {"name": "sign-flip", "scale": 1.0, "clients": [0]}
    assert sent(flips, [11, 12, 9], received=lambda client: model) == [[9, 8, 9]]


@pytest.mark.parametrize(("round", "sent"), [(0, 1), (1, 1), (2, -4), (3, 1), (4, 1), (5, -4)])
def test_attackers_follow_their_schedule(round, sent):
    attack = {"name": "sign-flip", "from_round": 3, "every": 3, "clients": [0]}
    assert struck(attack, [1, 0, 0], round=round).trained.deltas[0][0] == sent


def test_an_update_that_overflows_is_not_finite():
    with np.errstate(over="ignore"):  # as in a run
        found = struck({"name": "sign-flip", "scale": 1e30, "clients": [0]}, [1e20, 0, 0])
    assert reported(found, "finite") == [0]


def test_labels_are_mirrored_for_attackers_alone():
    graphs = GraphSet(None, np.zeros((1, 1), np.float32), np.zeros(1, np.int64), np.array([0, 1, 2, 3]))
    case = case_of(attack={"name": "label-flip", "clients": [1]})
    assert poisoned(case, 3, 1, 4, graphs).labels.tolist() == [3, 2, 1, 0]
    assert poisoned(case, 3, 0, 4, graphs).labels.tolist() == [0, 1, 2, 3]


def test_attackers_are_drawn_by_both_seeds():
    seeds = product(range(3), range(3))
    drawn = {tuple(SignFlip(fraction=0.4, seed=own).attackers(run, 10)) for own, run in seeds}
    assert len(drawn) > 4
    assert all(len(set(each)) == 4 for each in drawn)
    assert LabelFlip(fraction=0.25).attackers(1, 10).size == 3  # halves up
    assert Noise(fraction=0.01).attackers(1, 10).size == 1  # one at least
    assert Colluding(clients=(4, 2)).attackers(1, 10).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        ({"name": "noise", "clients": [0, 7]}, "there is no client 7: they are 0 to 2"),
        ({"name": "noise", "clients": [0, 1, 2]}, "all 3 clients attack"),
    ],
)
def test_attackers_that_cannot_be_are_refused(attack, said):
    with refused(match=said):
        refuse_unfit(case_of(attack=attack), 3)
