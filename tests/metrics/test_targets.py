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
    assert first_round(ACCURACY, 0.71) is None
    assert to_target(ACCURACY, 0.71, COST) is None
    errors = np.array([3.0, np.nan, 2.0, 1.0])  # lower scores reach a target from above
    assert [first_round(errors, target, higher=False) for target in (2.0, 0.9)] == [2, None]
