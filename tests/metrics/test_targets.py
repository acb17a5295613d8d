import numpy as np

from fedmpi.metrics.targets import Cost, ToTarget, first_round, to_target

ACCURACY = np.array([0.3, np.nan, 0.7, 0.4])
SECONDS = np.array([1.0, 2.0, 4.0, 8.0])
COST = Cost(SECONDS, 10 * SECONDS, (100 * SECONDS).astype(int), np.array([5, 6, 7, 8]))


def test_the_first_round_that_reaches_it_counts_and_is_paid_for():
    assert first_round(ACCURACY, 0.7) == 2
    paid = {"virtual_seconds": 70.0, "client_bytes": 700, "model_flops": 18}
    assert to_target(ACCURACY, 0.7, COST) == ToTarget(rounds=3, seconds=7.0, **paid)
    assert first_round(ACCURACY, 0.71) is None
    assert to_target(ACCURACY, 0.71, COST) is None
    errors = np.array([3.0, np.nan, 2.0, 1.0])  # lower scores reach a target from above
    assert [first_round(errors, target, higher=False) for target in (2.0, 0.9)] == [2, None]
