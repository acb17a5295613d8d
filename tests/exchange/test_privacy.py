"""Clipping and noise by numbers worked out by hand; epsilon beside what theory says."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from fedmpi.comm.reductions import Fixed32
from fedmpi.comm.world import World
from fedmpi.exchange.aggregation import Buffers, Groups, Plain
from fedmpi.exchange.noise import Uniforms, discrete_gaussian, gaussian
from fedmpi.exchange.privacy import Accountant, Clipping, NoiseOfMeans, deviation, elements, refuse_unfit
from fedmpi.seeds import Purpose
from tests.exchange.exchanged import case_of, reported, updates_of
from tests.refusals import refused

SIZE = 10_000


def private(reduction="fixed32", **privacy):
    return case_of(weights="equal", reduction=reduction, privacy=privacy)


def mean_of(case, noise=None):
    """Return the mean of four updates of 0.25 in each element."""
    deltas, nobody = {n: np.full(SIZE, 0.25, np.float32) for n in range(4)}, np.zeros(4, np.int64)
    plain = Plain(World().collectives, nobody, case.reduction, SIZE, Buffers(), noise)
    return plain.means(Groups(nobody, nobody, {0: 0}), np.arange(4), np.ones(4, np.int64), deltas)[0]


def source(*coordinates):
    return Uniforms(7, Purpose.NOISE, *coordinates)


def test_long_updates_are_shortened_and_short_ones_stay_as_they_are():
    updates = updates_of([3.0, 4.0, 50.0], [0.6, 0.1, 50.0], size=2)
    short = updates.trained.deltas[1]
    Clipping(1.0).alter(0, np.arange(2), updates)
    shortened = updates.trained.deltas[0]
    np.testing.assert_allclose(shortened, [0.6, 0.8, 50.0], rtol=1e-6)
    assert np.linalg.norm(shortened[:2].astype(float)) <= 1
    assert updates.trained.deltas[1] is short
    np.testing.assert_allclose(reported(updates, "delta_norm"), [1, 1], rtol=1e-6)


def test_the_noise_of_a_mean_is_the_multiplier_times_what_a_client_changes():
    assert deviation(private("exact", name="central"), 16, 4) == 0.25
    fixed = private(name="central", clip=2.0, noise_multiplier=3.0)
    grid = 2.0**-29  # of clip 1; sqrt(16) / 2 steps of rounding
    assert deviation(fixed, 16, 4) == 3.0 * (0.5 + 2 * grid)


def test_central_noise_is_added_to_the_mean_and_differs_by_round():
    case = private(name="central", clip=0.5, noise_multiplier=0.2)
    privacy = NoiseOfMeans(case, SIZE, 4, 4, is_root=True)

    def noise(round):
        privacy.alter(round, np.arange(4), updates_of(size=SIZE))
        return privacy.on_mean(0, mean_of(case)) - 0.25

    assert abs(noise(0).std() / 0.025 - 1) < 0.03
    assert np.array_equal(noise(0), noise(0))
    assert abs(np.corrcoef(noise(0), noise(1))[0, 1]) < 0.05


def test_shares_of_the_participants_add_up_to_the_noise_of_the_mean():
    """At a public exponent the sum holds its summands and their noise."""
    case = private(name="distributed", clip=0.5, noise_multiplier=0.2)
    privacy, reduction = NoiseOfMeans(case, SIZE, 4, 4, is_root=True), Fixed32(4, 1.0)
    shares = [privacy.share(client, reduction).astype(np.int64) for client in range(4)]
    assert abs(shares[0].std() * reduction.step / 0.0125 - 1) < 0.03
    assert abs(np.sum(shares, axis=0).std() * reduction.step / 0.025 - 1) < 0.03
    assert abs(np.corrcoef(shares[0], shares[1])[0, 1]) < 0.05
    assert np.array_equal(mean_of(case, privacy.share), 0.25 + sum(shares) * reduction.step)


def test_gaussian_noise_has_its_distribution():
    drawn = gaussian(source(1), 200_000)
    for point in (-2.0, -0.5, 0.0, 1.0, 2.5):
        assert abs((drawn < point).mean() - norm.cdf(point)) < 4e-3


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.3])
def test_discrete_gaussian_noise_has_its_probabilities(sigma):
    drawn = discrete_gaussian(source(2), sigma, 200_000)
    support = np.arange(-40, 41)
    weights = np.exp(-(support**2) / (2 * sigma**2))
    for point in range(-4, 5):
        expected = weights[support == point][0] / weights.sum()
        assert abs((drawn == point).mean() - expected) < 5e-3


def exact_delta(epsilon, multiplier):
    """Return delta of a Gaussian mechanism (Balle and Wang 2018, Theorem 8), noise over sensitivity given."""
    first = norm.cdf(0.5 / multiplier - epsilon * multiplier)
    return first - math.exp(epsilon) * norm.cdf(-0.5 / multiplier - epsilon * multiplier)


@pytest.mark.parametrize(("multiplier", "rounds"), [(4.0, 1), (4.0, 20), (20.0, 100)])
def test_epsilon_of_full_participation_is_that_of_one_wide_gaussian(multiplier, rounds):
    # T rounds at z are one at z / sqrt(T); replacing a client moves a sum by 2 C, so the noise is z / 2 of it.
    epsilon = Accountant(multiplier, 1e-5, 10, 10).epsilon(rounds)
    effective = multiplier / 2 / math.sqrt(rounds)
    assert exact_delta(epsilon, effective) <= 1e-5  # an upper bound ...
    assert exact_delta(0.85 * epsilon, effective) > 1e-5  # ... and not a loose one


def test_sampling_without_replacement_costs_less_than_taking_part_always():
    sampled, always = (Accountant(8.0, 1e-5, 1000, number).epsilon(50) for number in (10, 1000))
    assert 0 < sampled < 0.2 * always
    assert Accountant(8.0, 1e-5, 1000, 10).epsilon(51) > sampled
    sampled, always = (Accountant(0.01, 1e-5, 100, number).epsilon(50) for number in (30, 100))
    assert sampled <= always


def test_running_statistics_are_refused():
    with refused(match=r"running statistics norm\.0\.running_mean would be sent as they are"):
        refuse_unfit(private(name="clipping"), 10, 4, ["norm.0.running_mean"])


def test_noise_for_which_a_sum_has_no_room_is_refused():
    with refused(match=r"leaves no room for the noise of 4 participants: it takes 2.5 or more"):
        refuse_unfit(private(name="distributed"), 10, 4, [])


def test_participants_add_noise_to_what_is_summed():
    ten = {"name": "random-k", "share": 0.1, "scaled": False, "feedback": False}
    noisy, central = ({"weights": "equal", "privacy": {"name": name}} for name in ("distributed", "central"))
    assert elements(case_of(**noisy, reduction="fixed32", compression=ten), [(10, 9), (10,)]) == 10
    assert elements(case_of(**noisy, reduction="fixed32"), [(10, 9), (10,)]) == 100
    assert elements(case_of(**central, compression=ten), [(10, 9), (10,)]) == 100


def test_noise_that_the_grid_would_round_away_is_refused():
    case = private(name="distributed", clip=1e-3, noise_multiplier=1e-3)
    refuse_unfit(case, 100, 4, [])
    coarse = case.model_copy(update={"reduction": case.reduction.model_copy(update={"clip": 1024.0})})
    with refused(match=r"grid too coarse for each participant's share of the noise"):
        refuse_unfit(coarse, 100, 4, [])
