"""A client as its programs see it, in training and between rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.client.compiled_passes import CompiledPasses
from fedmpi.client.node_passes import NodePasses
from fedmpi.client.passes import Pass, Work, total_flops
from fedmpi.client.state import ClientState
from fedmpi.client.torch_passes import TorchPasses
from fedmpi.models.flat import SharedPart
from fedmpi.programs.hook_checks import Breach, like


class ProgramView:
    """What programs see of a client at any time.

    Parameters
    ----------
    client : ClientState
    """

    def __init__(self, client: ClientState) -> None:
        self._client, self.memory = client, client.memory
        self.work: list[Work] = []

    @property
    def incoming(self) -> Mapping[str, Tensor | None]:
        """See `program.Client`."""
        return self._client.known

    @property
    def shared(self) -> SharedPart:
        """See `program.Client`."""
        return self._client.shared

    def part(self, name: str | tuple[str, ...]) -> SharedPart:
        """See `program.Client`."""
        if isinstance(name, tuple):
            return self._client.model.shared(frozenset(name).__contains__)
        return self.memory.layout.parts[name]

    @property
    def _embedding(self) -> CompiledPasses | TorchPasses:
        """The client's passes, which can embed graphs."""
        passes = self._client.passes
        if not isinstance(passes, CompiledPasses | TorchPasses):
            raise Breach("used embeddings or labels, which these kernels do not give: set reads_embeddings")
        return passes

    @property
    def of_nodes(self) -> NodePasses | TorchPasses:
        """The client's passes, which give nodes; or those that give outputs of any graphs."""
        passes = self._client.passes
        return passes if isinstance(passes, NodePasses) else self.by_torch

    @property
    def by_torch(self) -> TorchPasses:
        """The client's passes, which give outputs."""
        passes = self._client.passes
        if not isinstance(passes, TorchPasses):
            raise Breach(
                "outputs of graphs and nodes are there under csr and reference: set reads_outputs, or name "
                "the tasks of nodes in `tasks`"
            )
        return passes

    def _outputs(self, *, held_out: bool) -> Tensor:
        """Return what the model in the workspace gives for all training or held-out graphs."""
        passes = self.by_torch
        parts = (passes.held_out if held_out else passes.train).parts()
        found = [passes.forward(part, head=True) for part in parts]
        self.work += found
        return torch.cat([each.rows for each in found])

    def _embeddings(self, *, held_out: bool) -> Tensor:
        """Return what the model in the workspace pools of all training or held-out graphs."""
        rows = []
        for part in self._embedding.embedded(held_out=held_out):
            self.work.append(part)
            rows.append(torch.as_tensor(part.rows).clone())
        return torch.cat(rows)


class BetweenRounds(ProgramView):
    """A client when it does not train: `fedmpi.algorithms.program.Evaluated`."""

    def __init__(self, client: ClientState) -> None:
        super().__init__(client)
        self.model = client.row

    def __getattr__(self, name: str) -> Any:
        """Refuse what only a client that trains has."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise Breach(
            f"used client.{name}: between rounds it has model, memory, incoming, part, shared, embeddings "
            "and outputs"
        )

    def embeddings(self) -> Tensor:
        """See `program.Evaluated`."""
        return self._embeddings(held_out=True)

    def outputs(self, *, at: Tensor | None = None) -> Tensor:
        """See `program.Evaluated`."""
        workspace = self._client.model.parameters
        evaluated = workspace.clone()
        workspace.copy_(evaluated if at is None else like(at, evaluated))
        try:
            return self._outputs(held_out=True)
        finally:
            workspace.copy_(evaluated)

    def of_outputs(self, outputs: Tensor) -> Pass:
        """Return an evaluation by outputs for the held-out graphs, of the work that made them."""
        passes = self.by_torch
        try:
            outcome = passes.judged(outputs)
        except (RuntimeError, IndexError) as error:
            raise Breach(f"returned outputs {list(outputs.shape)}, which the task cannot judge") from error
        return Pass(outcome, *total_flops(self.work))

    def judged(self, found: Pass, classes: npt.NDArray[np.int64]) -> Pass:
        """Return an evaluation whose hits are those of predicted classes; losses are the head's."""
        hits = (classes == self._embedding.held_out.labels).astype(np.uint8)
        counted, executed = total_flops([found, *self.work])
        outcome = replace(found.outcome, hits=hits)
        return replace(found, outcome=outcome, model_flops=counted, executed_flops=executed)
