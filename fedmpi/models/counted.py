"""FLOPs of a network that brings no formula: counted by torch on one batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import GraphSet
from fedmpi.models.counts import Flops, GraphCounts, ModelFlops
from fedmpi.models.dropout import DropoutStreams

COUNTED = "counted by torch on one batch"
"""What the provenance of a record says of such FLOPs; of others, `BY_FORMULA`."""
BY_FORMULA = "by formula"


@dataclass(frozen=True)
class CountedFlops(ModelFlops):
    """Counts in proportion to those of one batch.

    Dense products go with the nodes, sums over neighbours and graphs with nodes and edges.
    """

    batch: GraphCounts
    of_forward: Flops
    of_training: Flops

    def forward(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward pass."""
        return scaled(self.of_forward, self.batch, counts)

    def training(self, counts: GraphCounts) -> Flops:
        """Return the FLOPs of one forward and backward pass."""
        return scaled(self.of_training, self.batch, counts)

    def executed(self, counts: GraphCounts, *, training: bool, kernels: str, propagated: bool = False) -> int:
        """See `ModelFlops.executed`; the CSR kernels count a product for each term of a sum, too."""
        flops = self.of(counts, training)
        return flops.dense + (1 if kernels == "reference" else 2) * flops.sparse


def count_model(network: nn.Module, graphs: GraphSet) -> CountedFlops:
    """Return the FLOPs of a network with `graphs` as one batch; they depend on shapes alone."""
    topology = graphs.topology

    def batch() -> Batch:
        return replace(Batch.of(graphs), compiles=False)  # torch counts its own products alone

    with torch.no_grad():
        forward = count(lambda: network(batch(), None))
    training = count(lambda: network(batch(), DropoutStreams(0, 0, 0, 0)).sum().backward())
    sizes = GraphCounts(topology.num_graphs, topology.num_nodes, topology.num_edges)
    return CountedFlops(sizes, forward, training)


def scaled(flops: Flops, of: GraphCounts, counts: GraphCounts) -> Flops:
    """Return FLOPs counted on a batch for another one."""
    sparse = flops.sparse * (counts.nodes + counts.edges) // (of.nodes + of.edges)
    return Flops(flops.dense * counts.nodes // of.nodes, sparse)


def count(work: Callable[[], Any]) -> Flops:
    """Return the FLOPs of a call: dense products, and one addition for each number that a sum takes.

    Sums are products with a CSR matrix, `segment_reduce`, `index_add` and `scatter_add`.
    """
    added = 0

    def product(left: Tensor, right: Tensor, *_: Any, **__: Any) -> int:
        nonlocal added
        if left.layout != torch.sparse_csr:
            return 2 * left.shape[0] * left.shape[1] * right.shape[1]
        added += left.values().numel() * right.shape[1]
        return 0

    def segments(values: Tensor, *_: Any, **__: Any) -> int:
        nonlocal added
        added += values.numel()
        return 0

    def scattered(_: Tensor, dim: int, index: Tensor, source: Tensor, *__: Any, **___: Any) -> int:
        return segments(source)

    aten = torch.ops.aten
    mapping = {aten.mm: product, aten.segment_reduce: segments}
    adding = (aten.index_add, aten.index_add_, aten.scatter_add, aten.scatter_add_)
    mapping |= dict.fromkeys(adding, scattered)
    # torch's counter knows the attention of GPUs alone
    mapping[aten._scaled_dot_product_flash_attention_for_cpu] = _attention
    mapping[aten._scaled_dot_product_flash_attention_for_cpu_backward] = _attention_backward
    for formula in mapping.values():
        formula._get_raw = True  # type: ignore[attr-defined]
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        work()
    return Flops(counter.get_total_flops(), added)


def _attention(*arguments: Any, **_: Any) -> int:
    shapes = (each.shape for each in arguments[:3])
    return sdpa_flop_count(*shapes)  # type: ignore[no-any-return, no-untyped-call]


def _attention_backward(*arguments: Any, **_: Any) -> int:
    shapes = (each.shape for each in arguments[:4])
    return sdpa_backward_flop_count(*shapes)  # type: ignore[no-any-return, no-untyped-call]
