"""FedRep's Algorithm 1: head steps, then body steps, each with moments of its own."""

from itertools import pairwise
from types import SimpleNamespace

import torch

from tests.algorithms.programs import gradient_at, named

FEDREP = named("fedrep", head_epochs=3)
SETTINGS = ("algorithm=fedrep", "algorithm.head_epochs=2", "local_epochs=3")


def part(client, head, row=None):
    """Return the elements of a client's model, or of another, that are of its head, or all others."""
    row = client.row if row is None else row
    slots = [s for s in client.model.slots if s.name.startswith(("post.", "readout.")) == head]
    return torch.cat([row[slot.start : slot.stop] for slot in slots])


def test_the_head_trains_first_and_then_the_body():
    names, asked = ("pre.weight", "conv.0.first.bias", "post.weight", "readout.bias"), []

    def run_epochs(*, epochs=None, moments="model", frozen):
        asked.append((epochs, moments, [name for name in names if not frozen(name)]))

    FEDREP.train(SimpleNamespace(run_epochs=run_epochs))
    head, body = ["post.weight", "readout.bias"], ["pre.weight", "conv.0.first.bias"]
    assert asked == [(3, "model", head), (None, "body", body)]
    assert FEDREP.passes(FEDREP.options, 2) == (5, 0)


def test_each_phase_moves_its_own_part_only(prepared, monkeypatch):
    rounds = prepared(*SETTINGS)
    one = rounds.clients[0]
    seen, step = [(part(one, True), part(one, False))], type(one.passes).step

    def noted(passes, batch, streams):
        one.row.copy_(one.model.parameters)
        seen.append((part(one, True), part(one, False)))
        return step(passes, batch, streams)

    monkeypatch.setattr(type(one.passes), "step", noted)
    one.train_locally(rounds.case, rounds.algorithm, 0)
    seen.append((part(one, True), part(one, False)))
    heads, bodies = zip(*seen[1:], strict=True)  # before each of five steps, and after the last
    moved = [not torch.equal(a, b) for a, b in pairwise(heads)]
    assert moved == [True, True, False, False, False]
    moved = [not torch.equal(a, b) for a, b in pairwise(bodies)]
    assert moved == [False, False, True, True, True]


def test_a_step_of_the_head_is_the_optimizers_on_the_head(prepared):
    rounds = prepared("algorithm=fedrep", "algorithm.head_epochs=1", "optimizer.weight_decay=0.5")
    one, case = rounds.clients[0], rounds.case
    start = one.row.clone()
    gradient = gradient_at(rounds, start)
    expected = part(one, True, start - 0.25 * (gradient + 0.5 * start))
    one.train_locally(case, rounds.algorithm, 0)
    torch.testing.assert_close(part(one, True), expected)
