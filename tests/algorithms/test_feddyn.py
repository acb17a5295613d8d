"""FedDyn's Algorithm 1, worked out by hand: the local terms, the client's gradient, the server's h."""

from types import SimpleNamespace

import numpy as np
import torch

from tests.algorithms.programs import begin, named


def feddyn(trained=2, clients=4, **options):
    algorithm = named("feddyn", **options)
    begin(algorithm, trained, clients)
    return algorithm


def test_the_quadratic_term_draws_to_the_received_model_and_the_linear_one_takes_off_the_clients_gradient():
    gradient, memory = torch.tensor([1.0, 1.0]), {"gradient": torch.tensor([1.0, -2.0])}
    feddyn(alpha=0.5).change(gradient, torch.tensor([3.0, 0.0]), torch.tensor([1.0, 1.0]), memory)
    assert gradient.tolist() == [1.0, 2.5]


def test_the_clients_gradient_moves_against_the_update():
    client = SimpleNamespace(memory={"gradient": torch.tensor([1.0, 0.0])}, moved=torch.tensor([2.0, -4.0]))
    feddyn(alpha=0.5).trained(client)
    assert client.memory["gradient"].tolist() == [0.0, 2.0]


def test_the_server_goes_beyond_the_mean_by_h_over_alpha():
    """Two of four clients: h = -0.5 * 2/4 * [1, -2], so the model is w + [1, -2] + [0.5, -1], next w + more."""
    algorithm, model = feddyn(alpha=0.5), np.array([1.0, 1.0], np.float32)
    mean = np.array([1.0, -2.0])
    first = algorithm.update(model, mean, 2)
    assert first.tolist() == [2.5, -2.0]
    assert algorithm.server["server_h"].tolist() == [-0.25, 0.5]
    assert algorithm.update(first, np.zeros(2), 4).tolist() == [3.0, -3.0]


def test_running_statistics_move_by_the_mean():
    assert feddyn(1, 2).update(np.ones(2, np.float32), np.array([1.0, -0.5]), 2).tolist() == [3.0, 0.5]


def test_all_clients_weigh_the_same():
    assert feddyn().weights(np.array([5, 1000])).tolist() == [1, 1]


def test_a_client_takes_its_step_with_both_terms_and_renews_its_gradient(prepared):
    """From w_t = w the step is -0.25 (grad - g), and g becomes g - alpha times that step."""
    rounds = prepared("algorithm=feddyn", "algorithm.alpha=0.5")
    one, case = rounds.clients[0], rounds.case
    one.memory["gradient"] += 0.125
    start = one.shared.pack(one.row)
    one.train_locally(case, rounds.algorithm, 0)
    step = -0.25 * (one.shared.pack(one.model.gradient) - 0.125)
    torch.testing.assert_close(one.shared.pack(one.row) - start, step)
    torch.testing.assert_close(one.memory["gradient"], 0.125 - 0.5 * step)
