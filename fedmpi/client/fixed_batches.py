"""Batches of MVGRL with convolutions that are never trained: their output is computed once per graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from fedmpi.client.view_batches import Step, TorchBatches, counts_of
from fedmpi.graphs.diffusion import ViewedGraphs
from fedmpi.graphs.packed import Int
from fedmpi.graphs.weighted import WeightedBatch
from fedmpi.models.encoder import Encoding
from fedmpi.models.mvgrl import MvgrlEncoder, PairEncoding
from fedmpi.objectives.unsupervised import Views


@dataclass(eq=False)
class FixedBatches(TorchBatches):
    """`TorchBatches` that keep the convolutions' output: of nodes during a round, of graphs during the run.

    The output depends on the graph alone, since the server's random convolutions never change. Rows of
    nodes for the whole run would take as much memory as all else together.

    Attributes
    ----------
    module : MvgrlEncoder
        Without registered layers.
    """

    module: MvgrlEncoder = field(kw_only=True)
    _pair: PairEncoding | None = None
    _spent: int = 0

    def take(self, numbers: Int | None) -> Step:
        """Return training graphs with the convolutions' output; None stands for all."""
        if self._pair is None:
            self._pair = _mapped(_joined, *(pair for pair, _ in self._convolved(self.train)))
        step, fixed = super().take(numbers), self._pair
        if numbers is not None:
            nodes = torch.from_numpy(self.train.graphs.topology.nodes_of(numbers)).to(self.device)
            graphs = torch.from_numpy(numbers).to(self.device)
            fixed = _mapped(lambda side: Encoding(side.nodes[nodes], side.graphs[graphs]), fixed)
        return replace(step, views=replace(step.views, fixed=fixed))

    def end_round(self) -> None:
        """Drop the rows of nodes."""
        self._pair = None

    @cached_property
    def all_parts(self) -> list[Views]:
        """Views that are embedded, without rows of nodes."""
        nothing = torch.zeros(0, device=self.device)
        return [
            replace(views, fixed=_mapped(lambda side: Encoding(nothing, side.graphs), pair))
            for pair, views in self._convolved(self.everything)
        ]

    def step_flops(self, views: Views) -> int:
        """Count the heads, and the convolutions since the last count."""
        return self.flops.heads_and_bounds(counts_of(views)[0].counts).total + self._since()

    def vectors_flops(self, views: Views) -> int:
        """Count the head for graphs, and the convolutions since the last count."""
        return self.flops.graph_heads(counts_of(views)[0].counts).total + self._since()

    def _since(self) -> int:
        spent, self._spent = self._spent, 0
        return spent

    @torch.no_grad()
    def _convolved(self, graphs: ViewedGraphs) -> Iterator[tuple[PairEncoding, Views]]:
        """Yield the convolutions' output, some graphs at a time, with their views."""
        for part in graphs.parts():
            views = self._views(part)
            (first, other), adjacency, diffused = counts_of(views), views.adjacency, views.diffused
            assert adjacency is not None and isinstance(diffused, WeightedBatch) and other is not None
            self._spent += self.flops.convolutions(first, other, executed=True).total
            yield self.module.convolve(adjacency, diffused), views


def _mapped(of: Callable[..., Encoding], *pairs: PairEncoding) -> PairEncoding:
    """Return what a function gives of one side of all pairs, and of the other."""
    return PairEncoding(of(*(pair.adjacency for pair in pairs)), of(*(pair.diffused for pair in pairs)))


def _joined(*parts: Encoding) -> Encoding:
    """Return the rows of all parts, in order."""
    return Encoding(torch.cat([each.nodes for each in parts]), torch.cat([each.graphs for each in parts]))
