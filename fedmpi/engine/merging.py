"""A client merges its own parameters with received ones, by weights that it learns on its training graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedmpi.algorithms.base import round_half_up
from fedmpi.algorithms.capabilities import LossAt, Merging
from fedmpi.case.schema import Case
from fedmpi.engine.capability_hooks import LocalMerging
from fedmpi.engine.kept import MERGING_WEIGHTS
from fedmpi.engine.passes import Pass
from fedmpi.graphs.packed import Int
from fedmpi.models.dropout import DropoutStreams
from fedmpi.seeds import Purpose, key, permutation

if TYPE_CHECKING:
    from fedmpi.engine.clients import Client

_FIRST_STEP = 2**30
"""Number of the first pass of a round's merging, far from those of its training: it decides the dropout."""


def merge(client: Client, hooks: LocalMerging, case: Case, round: int, last: Tensor) -> list[Pass]:
    """Set the merged parameters in the client's workspace; return the passes that it took.

    Parameters
    ----------
    client : Client
        It has received its group's model; the workspace holds it.
    hooks : LocalMerging
    case : Case
    round : int
    last : float32 [length]
        Parameters at the end of the client's last round.
    """
    part, work = client.merged, list[Pass]()
    assert part is not None and client.passes is not None
    own, received = part.pack(last), part.pack(client.row)

    def loss_at(numbers: Int) -> LossAt:
        def evaluate(candidate: Tensor) -> tuple[float, Tensor]:
            assert client.passes is not None and part is not None
            client.model.parameters.copy_(client.row)
            part.unpack(candidate, client.model.parameters)
            streams = DropoutStreams(case.seed, client.id, round, _FIRST_STEP + len(work))
            work.append(client.passes.step(client.passes.batch(numbers), streams))
            return work[-1].outcome.mean_loss, part.pack(client.model.gradient)

        return evaluate

    def batches(share: float) -> list[LossAt]:
        order = permutation(key(case.seed, Purpose.MERGING, client.id, round), client.num_train)
        chosen = order[: max(1, round_half_up(share * client.num_train))]
        cuts = range(0, len(chosen), case.batch_size)
        return [loss_at(chosen[cut : cut + case.batch_size]) for cut in cuts]

    weights = client.kept[MERGING_WEIGHTS]
    first = bool(torch.isnan(weights[0]))
    present = torch.ones_like(weights) if first else weights.clone()
    weights.copy_(hooks.merging_weights(Merging(own, received, present, first, batches)))
    client.model.parameters.copy_(client.row)
    part.unpack(own + (received - own) * weights, client.model.parameters)
    return work
