"""Server optimizers, with steps worked out by hand."""

import numpy as np
import pytest

from fedmpi.algorithms import fedopt
from tests.algorithms.programs import begin

MODEL = np.array([1.0, 2.0], np.float32)
FIRST, SECOND = np.array([0.5, -0.25]), np.array([0.1, 0.3])


def started(kind, options, trained=2):
    algorithm = kind(options)
    begin(algorithm, trained, 4)
    return algorithm


def adaptive(kind):
    rates = {"server_lr": 0.1, "beta1": 0.5, "beta2": 0.75, "tau": 0.5}
    return started(kind, fedopt.AdaptiveOptions(name=kind.name, **rates))


def test_fedsgd_steps_by_the_mean_times_the_rate():
    algorithm = started(fedopt.FedSgd, fedopt.ServerOptions(name="fedsgd", server_lr=2.0))
    assert algorithm.update(MODEL, FIRST, 4).tolist() == [2, 1.5]


def test_fedavgm_keeps_momentum():
    algorithm = started(fedopt.FedAvgM, fedopt.MomentumOptions(name="fedavgm", momentum=0.5))
    model = algorithm.update(MODEL, FIRST, 4)
    assert model.tolist() == [1.5, 1.75]
    np.testing.assert_allclose(algorithm.update(model, SECOND, 4), [1.5 + 0.35, 1.75 + 0.175], rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "second"),
    [
        # v starts at tau^2 = 0.25; the squares are 0.25 and 0.0625
        (fedopt.FedAdagrad, [0.5, 0.3125]),
        (fedopt.FedAdam, [0.25, 0.203125]),
        (fedopt.FedYogi, [0.25, 0.25 - 0.25 * 0.0625]),
    ],
)
def test_adaptive_first_steps_and_a_restored_server_goes_on_alike(kind, second):
    algorithm, again = adaptive(kind), adaptive(kind)
    model = algorithm.update(MODEL, FIRST, 4)
    assert algorithm.server["server_second"].tolist() == second
    assert algorithm.server["server_first"].tolist() == [0.25, -0.125]
    expected = MODEL + 0.1 * np.array([0.25, -0.125]) / (np.sqrt(second) + 0.5)
    np.testing.assert_allclose(model, expected, rtol=1e-6)
    again.server = dict(algorithm.server)
    assert again.update(model, SECOND, 4).tolist() == algorithm.update(model, SECOND, 4).tolist()


def test_fedyogi_lowers_a_second_moment_only_by_a_part_of_the_square():
    algorithm = adaptive(fedopt.FedYogi)
    algorithm.update(MODEL, np.array([1.0, 0.0]), 4)
    assert algorithm.server["server_second"].tolist() == [0.25 + 0.25 * 1, 0.25]


def test_running_statistics_move_by_the_mean():
    algorithm = started(fedopt.FedAdam, fedopt.AdaptiveOptions(name="fedadam"), trained=1)
    assert algorithm.update(MODEL, FIRST, 4)[1] == 1.75
