"""The one-shot ensemble by hand: who is a member, and what the members predict together."""

import numpy as np
import pytest
import torch

from fedmpi.models.flat import SharedPart
from tests.algorithms.programs import client_of, named, run_round, server_of

NAN = float("nan")


def told(count=3, losses=(0.5, 0.1, 0.3), samples=(7, 9, 8), **options):
    """Return what the server tells where these clients of `count` trained, a model of one number each."""
    found = {}
    models = np.arange(1, len(losses) + 1, dtype=np.float32)[:, None]
    reports = {"validation_loss": np.array(losses), "samples": np.array(samples)}
    server, _ = server_of(
        [0] * len(losses), messages={"model": models}, reports=reports, tell=found.__setitem__
    )
    server.group, server.samples, server.seed, server.round = np.zeros(count, int), np.array(samples), 1, 0
    named("one-shot", **options).decide(server)
    return found["models"][:, 0].tolist()


def test_members_are_all_or_those_of_small_loss_or_many_graphs_or_random_ones():
    np.testing.assert_array_equal(told(count=4), [1, 2, 3, NAN])
    assert told(members=2) == [2, 3]
    assert told(members=1, selection="samples") == [2]
    assert told(members=2, losses=(1e30, 0.5, 1e30)) == [1, 2]
    assert len(told(members=2, selection="random")) == 2
    np.testing.assert_array_equal(told(members=4), [1, 2, 3, NAN])


def test_the_members_probabilities_are_averaged():
    """Odds of 3 to 1 and of 1 to 1 give 5 to 3."""
    outputs = {1.0: torch.tensor([[3.0, 1.0]]).log(), 2.0: torch.tensor([[1.0, 1.0]]).log()}
    client = client_of(
        model=torch.zeros(1), shared=SharedPart(((0, 1),), 1), outputs=lambda at: outputs[float(at)],
        incoming={"models": torch.tensor([[1.0], [NAN], [2.0]])},
    )  # fmt: skip
    torch.testing.assert_close(named("one-shot").predict(client).exp(), torch.tensor([[0.625, 0.375]]))
    client.incoming = {"models": None}
    assert named("one-shot").predict(client) is None


@pytest.mark.parametrize("members", [0, 2])
def test_a_round_is_scored_by_the_members(prepared, monkeypatch, members):
    rounds = prepared("algorithm=one-shot", f"algorithm.members={members}", "optimizer.lr=0.01")
    _, results = run_round(rounds, monkeypatch)
    clients, one = list(rounds.clients.values()), rounds.clients[0]
    if members:
        losses = []
        for client in clients:
            client.model.parameters.copy_(client.row)
            outcome = client.passes.evaluate().outcome
            losses.append(outcome.part(slice(client.num_validation)).mean_loss)
        clients = [clients[place] for place in sorted(np.argsort(losses)[:2])]
    probabilities = 0
    for client in clients:
        one.model.parameters.copy_(client.row)
        (part,) = one.passes.held_out.parts()
        probabilities = probabilities + one.passes.forward(part, head=True).rows.softmax(dim=1) / len(clients)
    right = probabilities[range(len(part.labels)), part.labels].double()[one.num_validation :]
    assert results["test_loss"][0] == pytest.approx(float(-right.log().mean()), rel=1e-5)
    size = 4 * one.shared.size
    assert results["client_bytes_up"].tolist() == [size] * 3
    assert results["client_bytes_down"].tolist() == [size * (members or 3)] * 3
