"""Which federations a leaderboard can use."""

import math
from dataclasses import replace

import pytest

from fedmpi.analysis.leaderboard.screening import Trial, detectable, screened
from fedmpi.errors import BadInput

TRIAL = Trial(
    *("one", "fedavg", 101, "complete", "accuracy", 0.6, 0.5, 0.1, 300, 2.5, "", 2, "0" * 64, "0" * 64)
)
TESTS = {
    "fedavg": {101: 50.0, 102: 52.0, 103: 54.0},
    "self-train": {101: 40.0, 102: 44.0, 103: 42.0},
    "centralised": {101: 55.0, 102: 55.0, 103: 61.0},
}


def trials(tests=TESTS, **changes):
    return [
        replace(TRIAL, method=method, seed=seed, test=score / 100, **changes)
        for method, scores in tests.items()
        for seed, score in scores.items()
    ]


def test_what_is_significant_follows_from_paired_differences():
    """Differences of -10, -8 and -12 deviate by 2; Student's quantile of 9 degrees at 1 - 0.05/60 is 4.4219."""
    assert detectable(TESTS) == pytest.approx(4.4219 * 2 / math.sqrt(10), rel=1e-4)
    assert math.isnan(detectable({"fedavg": {101: 50.0}, "self-train": {101: 40.0}}))
    assert detectable({"fedavg": {101: 1.0, 102: 2.0}, "self-train": {101: 1.0, 102: 2.0}}) == 0.0


def test_a_federation_is_kept_or_what_it_lacks_is_said():
    quiet = {method: {101: scores[101], 102: scores[101] + 1} for method, scores in TESTS.items()}
    (kept,) = screened(trials(quiet))
    means = {"fedavg": 50.5, "self-train": 40.5, "centralised": 55.5, "constant": 10.0}
    assert kept.scores == pytest.approx(means)
    assert (kept.gain, kept.gap) == pytest.approx((40.5, 15.0))
    assert (kept.seeds, kept.seconds, kept.lacks) == (2, 2.5, ())
    lacking = {
        "nothing learned": {"constant": 0.51},
        "few test examples": {"examples": 199},
        "costly": {"cpu_seconds": 20.1},
    }
    for word, change in lacking.items():
        assert screened(trials(quiet, **change))[0].lacks == (word,)
    assert screened(trials())[0].lacks == ("too noisy",)
    alike = {method: {101: 50.0, 102: 51.0} for method in TESTS}
    assert screened(trials(alike))[0].lacks == ("alone as together",)
    assert screened(trials({"fedavg": TESTS["fedavg"]}))[0].lacks == ("too few runs",)
    assert screened(trials({"self-train": TESTS["self-train"]}))[0].lacks == ("too few runs",)
    assert screened(trials({method: {101: scores[101]} for method, scores in TESTS.items()}))[0].lacks == (
        "too few runs",
    )


def test_the_constant_is_that_of_the_clients():
    """In Dirichlet shares a client's constant is far above that of all examples, as centralised training has it."""
    alone = trials({"self-train": {101: 72.0, 102: 72.0}}, constant=0.7)
    pooled = trials({"centralised": {101: 47.0, 102: 47.0}}, constant=0.3)
    (found,) = screened([*alone, *pooled])
    assert found.scores["constant"] == pytest.approx(70.0) and found.gain == pytest.approx(2.0)
    assert "nothing learned" in found.lacks


def test_clients_whose_features_differ_have_no_centralised_training():
    (found,) = screened(trials({name: TESTS[name] for name in ("fedavg", "self-train")}))
    assert found.gap == 10.0 and "centralised" not in found.scores


def test_a_method_that_diverges_counts_where_it_does_not():
    listed = [*trials(), replace(TRIAL, seed=104, status="diverged", test=math.nan, val=math.nan)]
    assert screened(listed)[0].scores["fedavg"] == 52.0


def test_points_need_a_metric_from_0_to_1():
    with pytest.raises(BadInput, match="rows of the metric rmse: a screening needs one from 0 to 1"):
        screened([replace(TRIAL, metric="rmse")])
