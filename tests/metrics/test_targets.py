import numpy as np

from fedmpi.metrics.targets import Cost, ToTarget, first_round, to_target

ACCURACY = np.array([0.3, np.nan, 0.7, 0.4])
COST = Cost(
    seconds=np.array([1.0, 2.0, 4.0, 8.0]),
    virtual_seconds=np.array([10.0, 20.0, 40.0, 80.0]),
    client_bytes=np.array([100, 200, 400, 800]),
    model_flops=np.array([5, 6, 7, 8]),
)


def test_the_first_round_that_reaches_it_counts_and_is_paid_for():
    assert first_round(ACCURACY, 0.7) == 2
    assert to_target(ACCURACY, 0.7, COST) == ToTarget(
        rounds=3, seconds=7.0, virtual_seconds=70.0, client_bytes=700, model_flops=18
    )


def test_never_reached():
    assert first_round(ACCURACY, 0.71) is None
    assert to_target(ACCURACY, 0.71, COST) is None


def test_lower_scores_reach_a_target_from_above():
    errors = np.array([3.0, np.nan, 2.0, 1.0])
    assert first_round(errors, 2.0, higher=False) == 2
    assert first_round(errors, 0.9, higher=False) is None
