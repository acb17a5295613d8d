"""A mini-batch on its device, and the sparse products that a graph network needs."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from fedmpi.graphs import pairs
from fedmpi.graphs.packed import GraphSet, SparseRows, Topology
from fedmpi.graphs.refinement.quotient import DENSE
from fedmpi.graphs.refinement.twins import TwinSums
from fedmpi.graphs.sparse import RowProduct, csr, fits, linear, product, transposed, with_self_loops


def _ones(columns: np.ndarray) -> np.ndarray:
    return np.ones(len(columns), np.float32)


def _features(graphs: GraphSet) -> Tensor:
    """Return node features as a tensor, sparse where their table is."""
    table = graphs.feature_rows
    if isinstance(table, SparseRows):
        rows = table.take(graphs.node_row)
        return csr(rows.row_ptr, rows.columns, rows.values, rows.width)
    # Torch's own memory is aligned, NumPy's only by chance, and products may round by alignment.
    return torch.from_numpy(graphs.features).clone(memory_format=torch.contiguous_format)


@dataclass(frozen=True)
class Batch:
    """Graphs of one step: features and labels as tensors, structure as products.

    Attributes
    ----------
    topology : Topology
        Structure of the B graphs.
    x : float32 [N, d], dense or sparse CSR
        Node features.
    labels : int64 [n], or float32 [n, T]
        Labels of the examples; or those of T tasks, NaN where one is missing.
    edges : float32 [E, A] or None
        Attributes of the edges, in the order of `edge_index`.
    structure : float32 [N, S] or None
        Structure encodings of the nodes.
    places : int64 [n] or [n, 2], or None
        Node, or pair of nodes, that each example is; None: examples are graphs.
    example_weights : float32 [B] or None
        What each graph counts in the training loss; None: all count alike.
    compiles : bool
        Whether sums over neighbours and dot products may be compiled, where examples are nodes or pairs.
    """

    topology: Topology
    x: Tensor
    labels: Tensor
    edges: Tensor | None = None
    structure: Tensor | None = None
    places: Tensor | None = None
    example_weights: Tensor | None = None
    compiles: bool = True

    @classmethod
    def of(cls, graphs: GraphSet, device: torch.device | str = "cpu") -> Batch:
        """Put packed graphs on a device."""
        x = _features(graphs)
        labels = torch.from_numpy(np.ascontiguousarray(graphs.labels))
        if labels.is_floating_point():
            labels = labels.float()
        edges = None
        if graphs.edges is not None:
            edges = torch.from_numpy(graphs.edges).to(torch.float32, copy=True).to(device)
        structure = (
            None if graphs.structure is None else torch.from_numpy(graphs.structure).clone().to(device)
        )
        places = None if graphs.places is None else torch.from_numpy(graphs.places).to(device)
        weights = None if graphs.weights is None else torch.from_numpy(graphs.weights).to(device)
        return cls(graphs.topology, x.to(device), labels.to(device), edges, structure, places, weights)

    @property
    def num_graphs(self) -> int:
        """Number of graphs B."""
        return self.topology.num_graphs

    def with_examples(self, places: Tensor, labels: Tensor) -> Batch:
        """Return the same graphs with other examples, int64 [n] or [n, 2], and their labels."""
        other = copy(self)  # with the matrices that were made already
        vars(other).pop("_pairs", None)
        object.__setattr__(other, "places", places)
        object.__setattr__(other, "labels", labels)
        return other

    @property
    def features(self) -> Tensor:
        """Node features as a dense table, float32 [N, d]."""
        return self.x if self.x.layout == torch.strided else self.x.to_dense()

    def moved(self, shift: Tensor) -> Batch:
        """Return the same graphs with features `features + shift`, [N, d], which may have a gradient."""
        other = copy(self)
        for name in ("_words", "_word_product", "propagated"):  # what was made of the features
            vars(other).pop(name, None)
        object.__setattr__(other, "x", self.features + shift)
        return other

    @property
    def num_places(self) -> int | None:
        """Number of examples that are nodes or pairs; None where examples are graphs."""
        return None if self.places is None else len(self.places)

    @property
    def num_entries(self) -> int | None:
        """Number of entries of sparse features; None where they are dense."""
        return None if self._words is None else self._words[0].values().numel()

    @cached_property
    def _words(self) -> tuple[Tensor, Tensor] | None:
        """Sparse features and their transpose."""
        if self.x.layout != torch.sparse_csr:
            return None
        row_ptr, columns = self.x.crow_indices().cpu().numpy(), self.x.col_indices().cpu().numpy()
        width = self.x.shape[1]
        order = np.argsort(columns, kind="stable")
        rows = np.repeat(np.arange(len(row_ptr) - 1), np.diff(row_ptr))[order]
        pointers = np.searchsorted(columns[order], np.arange(width + 1))
        values = self.x.values().cpu().numpy()[order]
        return self.x, csr(pointers, rows, values, len(row_ptr) - 1).to(self.x.device)

    @cached_property
    def _word_product(self) -> RowProduct:
        assert self._words is not None
        both = (
            tuple(part.numpy() for part in (each.crow_indices(), each.col_indices(), each.values()))
            for each in self._words
        )
        return RowProduct(*both)  # type: ignore[arg-type]

    @cached_property
    def by_relation(self) -> list[tuple[int, Tensor, Tensor]]:
        """Relation, senders [E_r] and receivers [E_r] of the edges of each relation that there is."""
        assert self.edges is not None
        relation = self.edges[:, 0].long()
        order = torch.argsort(relation, stable=True)
        found, counts = torch.unique_consecutive(relation[order], return_counts=True)
        pieces = torch.split(self.edge_index[:, order], counts.tolist(), dim=1)
        return [(int(each), *piece.contiguous()) for each, piece in zip(found, pieces, strict=True)]

    def linear(self, layer: nn.Linear) -> Tensor:
        """Return a layer of the features, [N, h]; zeros of sparse ones are skipped."""
        if self._words is None:
            return layer(self.x)  # type: ignore[no-any-return]
        if self._compiles(layer.weight.T):
            return self._word_product(layer.weight.T) + layer.bias
        return product(*self._words, layer.weight.T) + layer.bias

    def read(self, x: Tensor, pooling: str) -> Tensor:
        """Return what the head sees of each example, [n, h].

        Of a graph the ``"sum"`` or ``"mean"`` of its nodes' states, of a node its state, of a pair the
        product of its nodes' states, element by element.
        """
        if self.places is None:
            return self.sum_graphs(x) if pooling == "sum" else self.mean_graphs(x)
        if self.places.dim() == 1:
            return x.index_select(0, self.places)
        first, second = (x.index_select(0, side) for side in self.places.unbind(1))
        return first * second

    def dots(self, x: Tensor) -> Tensor:
        """Return the dot product of the states of each pair's nodes, [n, 1]."""
        if self._compiles(x):
            return self._pairs.dots(x)[:, None]
        return self.read(x, "sum").sum(dim=1, keepdim=True)

    @cached_property
    def _pairs(self) -> pairs.Pairs:
        assert self.places is not None
        return pairs.Pairs.of(self.places.numpy(), self.topology.num_nodes)

    @cached_property
    def closed(self) -> tuple[np.ndarray, np.ndarray]:
        """Pointers [N + 1] and columns [E + N] of A + I, self loop last in each row."""
        return with_self_loops(self.topology)

    @cached_property
    def closed_index(self) -> tuple[Tensor, Tensor]:
        """Receivers and senders of A + I, int64 [E + N] each."""
        row_ptr, columns = self.closed
        receivers = np.repeat(np.arange(len(row_ptr) - 1), np.diff(row_ptr))
        receiver, sender = (torch.from_numpy(np.asarray(side, np.int64)) for side in (receivers, columns))
        return receiver.to(self.x.device), sender.to(self.x.device)

    @cached_property
    def _inverse_roots(self) -> Tensor:
        """One over the root of each row's sum of A + I, [N, 1]."""
        sizes = (np.diff(self.topology.row_ptr) + 1).astype(np.float32)
        return torch.from_numpy(1 / np.sqrt(sizes))[:, None].to(self.x.device)

    @cached_property
    def _inverse_sizes(self) -> Tensor:
        """One over the number of each graph's nodes, [B, 1]; 1 for graphs without any."""
        sizes = np.maximum(np.diff(self.topology.graph_ptr), 1).astype(np.float32)
        return torch.from_numpy(1 / sizes)[:, None].to(self.x.device)

    @cached_property
    def _neighbourhood(self) -> tuple[Tensor, Tensor]:
        return self._with_transpose(*self.closed, _ones(self.closed[1]))

    def _with_transpose(
        self, row_ptr: np.ndarray, columns: np.ndarray, values: np.ndarray
    ) -> tuple[Tensor, Tensor]:
        """Return a matrix of nodes by nodes, and its transpose, on the device."""
        pointers, rows, order = transposed(row_ptr, columns)
        device, width = self.x.device, self.topology.num_nodes
        backward = csr(pointers, rows, values[order], width)
        return csr(row_ptr, columns, values, width).to(device), backward.to(device)

    @cached_property
    def _pooling(self) -> Tensor:
        num_nodes = self.topology.num_nodes
        nodes = np.arange(num_nodes)
        return csr(self.topology.graph_ptr, nodes, _ones(nodes), num_nodes).to(self.x.device)

    @cached_property
    def graph_of_node(self) -> Tensor:
        """Graph number of each node, int64 [N]."""
        sizes = torch.from_numpy(np.diff(self.topology.graph_ptr))
        return torch.repeat_interleave(torch.arange(self.num_graphs), sizes).to(self.x.device)

    @cached_property
    def edge_index(self) -> Tensor:
        """Edges as torch-geometric has them, int64 [2, E]: row 0 sends, row 1 receives."""
        receivers = np.repeat(np.arange(self.topology.num_nodes), np.diff(self.topology.row_ptr))
        edges = np.stack([np.asarray(self.topology.columns), receivers]).astype(np.int64)
        return torch.from_numpy(edges).to(self.x.device)

    def sum_neighbourhood(self, x: Tensor) -> Tensor:
        """Return ``(A + I) x``, [N, h]: each node's sum over its neighbours and itself."""
        if self._compiles(x):
            return self._sums(x)
        return product(*self._neighbourhood, x)

    def _compiles(self, x: Tensor) -> bool:
        """Whether products with a matrix of such rows are compiled: where examples are nodes or pairs."""
        return self.compiles and self.places is not None and fits(x)

    @cached_property
    def _sums(self) -> RowProduct:
        return self._rows(*self.closed, _ones(self.closed[1]))

    @cached_property
    def _normalised_sums(self) -> RowProduct:
        """``D^-1/2 (A + I) D^-1/2``."""
        row_ptr, columns = self.closed
        roots = self._inverse_roots.cpu().numpy()[:, 0]
        return self._rows(row_ptr, columns, np.repeat(roots, np.diff(row_ptr)) * roots[columns])

    @cached_property
    def _means(self) -> RowProduct:
        """A, each row divided by its number of entries."""
        row_ptr, columns = np.asarray(self.topology.row_ptr), np.asarray(self.topology.columns)
        return self._rows(
            row_ptr, columns, np.repeat(self._inverse_degrees.cpu().numpy()[:, 0], np.diff(row_ptr))
        )

    def _rows(self, row_ptr: np.ndarray, columns: np.ndarray, values: np.ndarray) -> RowProduct:
        pointers, rows, places = transposed(row_ptr, columns)
        return RowProduct((row_ptr, columns, values), (pointers, rows, values[places]))

    def sum_graphs(self, x: Tensor) -> Tensor:
        """Return the sum over the nodes of each graph, [B, h]."""
        return linear(self._pooled, self._spread, x)

    def _pooled(self, x: Tensor) -> Tensor:
        return self._pooling @ x

    def _spread(self, values: Tensor) -> Tensor:
        return values.index_select(0, self.graph_of_node)

    def mean_graphs(self, x: Tensor) -> Tensor:
        """Return the mean over the nodes of each graph, [B, h]."""
        return self.sum_graphs(x) * self._inverse_sizes

    def normalised_sum(self, x: Tensor, *, by_twins: bool = False) -> Tensor:
        """Return ``D^-1/2 (A + I) D^-1/2 x``, [N, h], D the row sums of A + I (Kipf and Welling 2017)."""
        if self._compiles(x):
            return self._normalised_sums(x)
        summed = self.sum_by_twins if by_twins else self.sum_neighbourhood
        return summed(x * self._inverse_roots) * self._inverse_roots

    @cached_property
    def _twins(self) -> TwinSums | None:
        """Sums by twins, where graphs have so many edges that twins are likely."""
        if self.topology.num_edges <= DENSE * self.topology.num_nodes:
            return None
        return TwinSums.of(self.topology, self.x.device)

    @property
    def num_entries_by_twins(self) -> int:
        """Entries that `sum_by_twins` adds up beside one per node."""
        return self.topology.num_edges if self._twins is None else self._twins.num_entries

    def sum_by_twins(self, x: Tensor) -> Tensor:
        """Return ``(A + I) x`` as `sum_neighbourhood`, once for nodes with the same closed neighbourhood."""
        return self.sum_neighbourhood(x) if self._twins is None else self._twins(x)

    @cached_property
    def propagated(self) -> Tensor:
        """`normalised_sum` of the features, which is the same in every step that has these graphs, [N, d]."""
        return self.normalised_sum(self.x)

    @property
    def keeps_propagated(self) -> bool:
        """Whether `propagated` was computed already."""
        return "propagated" in vars(self)

    def reduce_rows(self, values: Tensor, how: str) -> Tensor:
        """Return the ``"sum"`` or ``"max"`` of the values [E + N, ...] over each row of A + I, [N, ...]."""
        return torch.segment_reduce(values, how, offsets=self._row_starts, axis=0)

    @cached_property
    def _row_starts(self) -> Tensor:
        return torch.from_numpy(np.asarray(self.closed[0], np.int64)).to(self.x.device)

    def reduce_edges(self, values: Tensor) -> Tensor:
        """Return each node's sum of values [E, h], ordered as `edge_index`, of the edges to it, [N, h]."""
        return torch.segment_reduce(values, "sum", offsets=self._edge_starts, axis=0)

    @cached_property
    def _edge_starts(self) -> Tensor:
        return torch.from_numpy(np.asarray(self.topology.row_ptr, np.int64)).to(self.x.device)

    def mean_neighbours(self, x: Tensor) -> Tensor:
        """Return the mean over each node's neighbours without itself, 0 where it has none, [N, h]."""
        if self._compiles(x):
            return self._means(x)
        return product(*self._open, x) * self._inverse_degrees

    @cached_property
    def _open(self) -> tuple[Tensor, Tensor]:
        """A and its transpose."""
        row_ptr, columns = np.asarray(self.topology.row_ptr), np.asarray(self.topology.columns)
        return self._with_transpose(row_ptr, columns, _ones(columns))

    @cached_property
    def _inverse_degrees(self) -> Tensor:
        """One over the number of each node's neighbours; 0 where it has none, [N, 1]."""
        degrees = np.diff(self.topology.row_ptr).astype(np.float32)
        inverse = np.divide(1, degrees, out=np.zeros_like(degrees), where=degrees > 0)
        return torch.from_numpy(inverse)[:, None].to(self.x.device)

    def spread_graphs(self, values: Tensor) -> Tensor:
        """Return each node's graph's row of `values` [B, h], [N, h]."""
        return linear(self._spread, self._pooled, values)
