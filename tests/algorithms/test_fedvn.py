"""FedVN's decoupling by hand; what each of the two phases trains; what leaves a client."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fedmpi.algorithms.fedvn import decoupling_slope
from fedmpi.algorithms.moon import contrast
from tests.algorithms.programs import gradient_at, named

SETTINGS = (
    "algorithm=fedvn",
    "model=fedvn",
    "model.nodes=3",
    "model.hidden=8",
    "share=all",
    "algorithm.decoupling=2",
)


def test_correlated_virtual_nodes_are_driven_apart():
    """Of correlation c = 1/2, with L_D = (2 + 2 c^2) / 4: the slope is c (n_2 - c n_1) / |v_1|, and likewise."""
    found = decoupling_slope(torch.tensor([[1.0, -1, 0], [1, 0, -1]]))
    assert found.flatten().tolist() == pytest.approx([0.125, 0.125, -0.25, 0.125, -0.25, 0.125])
    assert not decoupling_slope(torch.zeros(2, 3)).any()


def test_a_graph_between_its_clients_and_everybodys_scores_has_log_2():
    current = torch.tensor([[1.0, 1.0], [0.0, 2.0]])
    one, other = torch.tensor([[0.0, 3.0]]), torch.tensor([[1.0, 0.0]])
    near = np.log1p(np.exp(-1 / 0.5))
    assert contrast(current, one, other, 0.5).item() == pytest.approx((np.log(2) + near) / 2)


def test_the_generator_trains_first_and_then_all_else(prepared):
    """A step of 1/4 each: by the gradient at the received model, and at that with the new generator."""
    rounds = prepared(*SETTINGS)
    one, case = rounds.clients[0], rounds.case
    with torch.no_grad():
        slot = one.model.by_name["virtual.states"]
        one.row[slot.start : slot.stop] = torch.linspace(-1, 1, 24) ** 2
    start, trained = one.row.clone(), one.model.trained
    generator = torch.zeros(trained, dtype=torch.bool)
    for each in one.model.slots:
        generator[each.start : each.stop] = each.name.startswith("score.")
    first = gradient_at(rounds, start)[:trained]
    middle = start.clone()
    middle[:trained] -= 0.25 * first * generator
    second = gradient_at(rounds, middle, step=1)[:trained]
    second[slot.start : slot.stop] += 2 * decoupling_slope(start[slot.start : slot.stop].view(3, 8)).flatten()
    middle[:trained] -= 0.25 * second * ~generator
    one.train_locally(case, rounds.algorithm, 0)
    torch.testing.assert_close(one.row[:trained], middle[:trained], rtol=1e-4, atol=1e-6)


def test_scores_are_drawn_to_the_clients_own_once_there_are_everybodys(prepared):
    found = []
    for weight in ("0", "5"):
        rounds = prepared(*SETTINGS, f"algorithm.contrast={weight}")
        one = rounds.clients[0]
        one.told["score"].copy_(torch.tensor([1.0, 0, 0]))
        one.train_locally(rounds.case, rounds.algorithm, 0)
        found.append(one.row.clone())
    slot = one.model.by_name["score.readout.weight"]
    assert not torch.equal(*(row[slot.start : slot.stop] for row in found))


def test_everybodys_score_is_weighted_as_the_models_are():
    told = {}
    server = SimpleNamespace(
        participants=np.array([0, 2]),
        weights=np.array([30, 99, 10]),
        messages={"score": np.array([[1, 2], [5, 6]], np.float32)},
        tell=told.__setitem__,
    )
    named("fedvn").decide(server)
    assert told["score"].tolist() == [2, 3] and told["score"].dtype == np.float32


def test_generators_stay_and_virtual_nodes_leave():
    leaves = named("fedvn").shares
    assert leaves("virtual.states", "conv") and leaves("virtual.mlp.0.first.weight", "conv")
    assert (
        leaves("conv.0.first.weight", "conv")
        and not leaves("pre.weight", "conv")
        and leaves("pre.weight", "all")
    )
    assert not leaves("score.conv.0.first.weight", "all")
