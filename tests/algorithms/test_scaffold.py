"""SCAFFOLD's Algorithm 1, option II, with numbers worked out by hand."""

import numpy as np
import torch

from tests.algorithms.programs import client_of, named


def scaffold(trained=2, clients=4, **options):
    algorithm = named("scaffold", **options)
    algorithm.begin(trained, clients)
    return algorithm


def client(own, control, moved=(0.0, 0.0), steps=1, lr=1.0):
    """Return a client as `trained` sees it."""
    memory, incoming = {"own": torch.tensor(own)}, {"control": torch.tensor(control)}
    seen = {"memory": memory, "incoming": incoming, "moved": torch.tensor(moved), "trained_shared": len(own)}
    return client_of(**seen, steps=steps, lr=lr)


def test_a_local_gradient_gains_c_minus_c_i():
    gradient = torch.tensor([10.0, 10.0])
    memory = {"own": torch.tensor([1.0, 2.0]), "control": torch.tensor([0.5, 3.0])}
    scaffold().change(gradient, torch.zeros(2), torch.zeros(2), memory)
    assert gradient.tolist() == [9.5, 11.0]


def test_the_next_control_variate_is_the_mean_gradient_corrected():
    """With c = c_i = 0 and K steps along one gradient g, x - y_i = K eta g, so c_i becomes g."""
    first = client([0.0, 0.0], [0.0, 0.0], (-0.4, 0.8), steps=4, lr=0.1)
    scaffold().trained(first)
    torch.testing.assert_close(first.memory["own"], torch.tensor([1.0, -2.0]))
    torch.testing.assert_close(first.sent["control"], torch.tensor([1.0, -2.0]))
    second = client([1.0, -2.0], [0.25, 0.5], steps=4, lr=0.1)
    scaffold().trained(second)
    torch.testing.assert_close(second.memory["own"], torch.tensor([0.75, -2.5]))
    torch.testing.assert_close(second.sent["control"], torch.tensor([-0.25, -0.5]))


def test_running_statistics_have_no_control_variate():
    one = client([0.0, 0.0], [0.0, 0.0, 0.0], (1.0, 1.0, 1.0))
    scaffold().trained(one)
    assert one.memory["own"].tolist() == [-1, -1] and one.sent["control"].tolist() == [-1, -1, 0]


def test_the_server_moves_x_by_the_mean_and_c_by_the_share_that_took_part():
    model = np.array([1.0, 2.0, 0.5, 0.5], np.float32)
    mean = np.array([1.0, -1.0, 0.4, 0.8])
    found = scaffold(server_lr=0.5).update(model, mean, 2)
    np.testing.assert_allclose(found, [1.5, 1.5, 0.5 + 0.2, 0.5 + 0.4], rtol=1e-6)


def test_running_statistics_move_by_the_mean_whatever_the_server_lr():
    """Of x the second element is a running variance; c has two elements too."""
    model, mean = np.array([1.0, 1.0, 0.0, 0.0], np.float32), np.array([-0.5, -0.5, 0.0, 0.0])
    assert scaffold(1, 2, server_lr=3.0).update(model, mean, 2).tolist() == [-0.5, 0.5, 0.0, 0.0]


def test_all_clients_weigh_the_same():
    assert scaffold().weights(np.array([5, 1000])).tolist() == [1, 1]
