"""FedTAD's game by hand: pseudo graphs, losses, and steps of Adam that go on from round to round."""

import math

import numpy as np
import pytest
import torch

from fedmpi.models import distillation
from fedmpi.models.distillation import Distillation, NodeGenerator, Taught


def test_the_last_class_has_the_nodes_that_are_left():
    assert distillation.classes_of_nodes(7, 3).tolist() == [0, 0, 1, 1, 2, 2, 2]


def test_nodes_are_joined_to_the_most_similar_in_both_directions():
    """The second is most like the first, the third most like the second; nobody is joined to itself."""
    graph = distillation.nearest_neighbours(torch.tensor([[1.0, 0.0], [2.0, 0.2], [0.0, 1.0]]), 2)
    assert (graph.row_ptr.tolist(), graph.columns.tolist()) == ([0, 1, 3, 4], [1, 0, 2, 1])


def test_losses_are_means_of_classes_by_the_clients_shares():
    labels = torch.tensor([0, 1])
    outputs = [torch.zeros(2, 2), torch.tensor([[math.log(3), 0.0], [0.0, 0.0]])]
    weights = torch.tensor([[0.5, 1.0], [0.5, 0.0]])
    expected = 0.5 * math.log(2) + math.log(2) + 0.5 * math.log(4 / 3)
    assert distillation.semantic_loss(outputs, labels, weights).item() == pytest.approx(expected)
    apart = distillation.divergence(torch.tensor([[1.0, -1.0], [2.0, 0.0]]), [torch.zeros(2, 2)], weights[:1])
    assert apart.item() == pytest.approx(0.5 * 1 + 1.0 * 1)


def test_nodes_whose_noise_differs_should_differ():
    """Of four pairs two are 2 apart in features and 3 in squared noise: exp(-(6 + 6) / 4)."""
    features, noise = torch.tensor([[0.0, 0.0], [1.0, 3.0]]), torch.tensor([[0.0], [math.sqrt(3)]])
    assert distillation.likeness(features, noise).item() == pytest.approx(math.exp(-3))


def play(memory, model, graphs=1):
    """Return the global model after a round against two clients of parameters 1 and 3: outputs are multiples."""
    settings = distillation.Settings(
        nodes=4, noise=2, neighbours=2, graphs=graphs, generator_steps=1, model_steps=1, generator_lr=0.01,
        model_lr=0.5, weight_decay=0.0, semantic=1.0, diversity=1.0,
    )  # fmt: skip
    torch.manual_seed(1)
    generator = NodeGenerator(2, 2, 2, (4,))
    before = generator.values()
    game = Distillation(settings, generator, lambda vector, graph, features: vector[0] * features, memory)
    taught = Taught([torch.tensor([1.0, 7.0]), torch.tensor([3.0, 7.0])], torch.full((2, 2), 0.5))
    draws = np.random.default_rng(1)
    noise = draws.standard_normal((4, 2), dtype=np.float32)
    found = game.run(torch.tensor([model, 7.0]), 1, taught, lambda number: noise)
    return found.tolist(), before, generator.values()


def fresh(size):
    own = {f"generator_{each}": np.zeros(size, np.float32) for each in ("first", "second")}
    theirs = {f"model_{each}": np.zeros(1, np.float32) for each in ("first", "second")}
    steps = {f"{each}_steps": np.zeros(1, np.float32) for each in ("generator", "model")}
    return own | theirs | steps


def test_the_global_model_steps_towards_the_clients_and_statistics_stay():
    """Adam's first step is as long as its rate; between both clients of equal shares there is no slope."""
    memory = fresh(4 + 20 + 10)
    found, before, after = play(memory, 0.0)
    assert found == pytest.approx([0.5, 7.0])
    assert np.abs(after - before).max() == pytest.approx(0.01, rel=1e-3)
    assert memory["model_steps"].tolist() == [1] and memory["generator_first"].any()
    assert play(fresh(34), 2.0)[0] == pytest.approx([2.0, 7.0])


def test_adam_goes_on_in_the_next_round():
    """The slope of the first step, at 0, is kept: between the clients it is 0, and the model moves on."""
    memory = fresh(34)
    play(memory, 0.0)
    first = float(memory["model_first"][0])
    found, _, _ = play(memory, 2.0)
    assert float(memory["model_first"][0]) == pytest.approx(0.9 * first)
    assert found[0] > 2.1 and memory["model_steps"].tolist() == [2]
