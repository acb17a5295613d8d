"""Training of NeighGen by a client on its part of a graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.mended import Impaired, impaired
from fedmpi.graphs.packed import GraphSet
from fedmpi.models import neighgen
from fedmpi.models.flat import FlatModel
from fedmpi.models.generator import Generator, NeighGenFlops
from fedmpi.models.neighgen import Draws, NeighGen, no_dropout
from fedmpi.seeds import Purpose, key, permutation

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


Adam = Callable[[int], Callable[[Tensor, Tensor], None]]
"""Takes a number of parameters to what takes a step of them in place, by their gradient."""


class NeighGenTraining:
    """A client's generator in training.

    Parameters
    ----------
    settings : Generator
    graphs : GraphSet
        The client's part with its training examples.
    classes : int
    seed, client : int
        Decide initialisation, hidden nodes, noise and dropout.
    adam : Adam
    device : torch.device

    Attributes
    ----------
    flops : int
        Of all passes so far.
    """

    def __init__(
        self,
        settings: Generator,
        graphs: GraphSet,
        classes: int,
        seed: int,
        client: int,
        adam: Adam,
        device: torch.device | str = "cpu",
    ) -> None:
        self._settings, self._graphs, self._seed, self._client = settings, graphs, seed, client
        self._features = torch.from_numpy(graphs.features).clone().to(device)
        width = self._features.shape[1]
        self._flops = NeighGenFlops(settings, width, classes)
        self.flops = 0
        self._part = impaired(graphs.topology, _hidden(settings, graphs, key(seed, Purpose.MENDING, client)))
        self._batch = _batch(graphs, self._part, device)
        self._x = self._features.index_select(0, torch.from_numpy(self._part.kept).to(device))
        self._missing = torch.from_numpy(self._part.missing).to(device)
        self._network = NeighGen(settings, width, classes)
        self._model = FlatModel(self._network, device)
        self._model.initialise(seed, -(client + 1))  # a client's own model is of owner client + 1
        self._adam = adam
        self._scale = neighgen.feature_scale(settings, len(self._part.kept), width)

    def train_alone(self, proceed: Callable[[], None] = lambda: None) -> None:
        """Take the epochs in which all parts of the network train; `proceed` is called before each."""
        descend = self._adam(self._model.length)
        for epoch in range(self._settings.epochs):
            proceed()
            draws = Draws(self._seed, self._client, epoch)
            drop = draws.dropout(self._settings.dropout)
            z, numbers = self._network.states(self._batch, self._x, drop)
            counts = self._network.counts(numbers)
            rows = self._network.neighbours(z, counts, draws, drop)
            loss = self._settings.number_weight * neighgen.number_loss(numbers, self._missing)
            own, pairs = self._own_loss(rows, counts, drop)
            self._step(loss + own, self._model.parameters, self._model.gradient, descend)
            self.flops += self._flops.epoch(*self._sizes(counts), pairs)
        self._freeze()

    def _own_loss(self, rows: Tensor, counts: Tensor, drop: neighgen.Drop) -> tuple[Tensor, int]:
        """Return the losses of features and classes, and the pairs of nodes that were compared."""
        settings, part = self._settings, self._part
        owners = torch.repeat_interleave(counts)
        numbers = owners.cpu().numpy()
        hidden = part.hidden_ptr, part.hidden
        held, nearest = neighgen.nearest_neighbours(rows, numbers, *hidden, self._features)
        held_rows = rows.index_select(0, torch.from_numpy(held).to(rows.device))
        targets = self._features.index_select(0, torch.from_numpy(nearest).to(rows.device))
        loss = settings.feature_weight * neighgen.feature_loss(held_rows, targets, self._scale)
        pairs = int(np.diff(part.hidden_ptr)[numbers].sum())
        if self._batch.num_places:
            outputs = self._network.classifier.mended(self._batch, self._x, rows, owners, drop)
            known = self._batch.read(outputs, "sum")
            loss = loss + settings.class_weight * cross_entropy(known, self._batch.labels)
        return loss, pairs

    def _step(
        self, loss: Tensor, parameters: Tensor, gradient: Tensor, descend: Callable[[Tensor, Tensor], None]
    ) -> None:
        self._model.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        descend(parameters, gradient)

    def _sizes(self, counts: Tensor) -> tuple[int, int, int, int]:
        """Return nodes, edges, nodes that get neighbours, and these."""
        topology = self._batch.topology
        return topology.num_nodes, topology.num_edges, int((counts > 0).sum()), int(counts.sum())

    def _freeze(self) -> None:
        """Leave fGen alone to train; states and numbers are those of evaluation from now on."""
        for name, parameter in self._network.named_parameters():
            parameter.requires_grad_(name.startswith("features."))
        with torch.no_grad():
            self._z, numbers = self._network.states(self._batch, self._x, no_dropout)
        self._counts = self._network.counts(numbers)
        self.flops += self._flops.encoding(self._batch.topology.num_nodes, self._batch.topology.num_edges)
        start = next(slot.start for slot in self._model.slots if slot.name.startswith("features."))
        self._tail = slice(start, self._model.trained)
        self._descend = self._adam(self._model.trained - start)

    @property
    def num_rows(self) -> int:
        """Number of rows of `generate`."""
        return int(self._counts.sum())

    def generate(self, exchange: int) -> Floats:
        """Return the generated features of an exchange, which the others get, float32 [num_rows, d]."""
        self._draws = Draws(self._seed, self._client, self._settings.epochs + exchange)
        drop = self._draws.dropout(self._settings.dropout)
        self._rows = self._network.neighbours(self._z, self._counts, self._draws, drop)
        rows: Floats = self._rows.detach().cpu().numpy()
        return rows

    def answer(self, rows: Floats) -> Floats:
        """Return each row of another client minus this client's nearest node, float32 [R, d]."""
        asked = torch.from_numpy(rows).clone().to(self._features.device)
        self.flops += self._flops.answers(len(rows), len(self._features))
        answer: Floats = neighgen.differences_to_nearest(asked, self._features).cpu().numpy()
        return answer

    def learn(self, answers: Floats) -> None:
        """Take the step of an exchange.

        Parameters
        ----------
        answers : float32 [num_rows, d]
            Sum over the other clients of what they answered the rows of `generate`.
        """
        if not self.num_rows:
            return  # nothing that was generated depends on fGen
        own, pairs = self._own_loss(self._rows, self._counts, self._draws.dropout(self._settings.dropout))
        slope = 2 * self._settings.feature_weight * self._settings.others_weight * self._scale
        theirs = torch.from_numpy(answers).clone().to(self._rows.device) * slope
        tail = self._tail
        loss = own + (self._rows * theirs).sum()
        self._step(loss, self._model.parameters[tail], self._model.gradient[tail], self._descend)
        self.flops += self._flops.exchange(*self._sizes(self._counts), pairs)

    @torch.no_grad()
    def missing(self) -> tuple[Ints, Floats]:
        """Return the whole part's missing neighbours: the node of each, int64 [G], and features [G, d]."""
        whole = Batch.of(self._graphs, self._features.device)
        z, numbers = self._network.states(whole, self._features, no_dropout)
        counts = self._network.counts(numbers)
        last = Draws(self._seed, self._client, self._settings.epochs + self._settings.exchanges)
        rows = self._network.neighbours(z, counts, last, no_dropout)
        self.flops += self._flops.encoding(whole.topology.num_nodes, whole.topology.num_edges)
        self.flops += self._flops.features(int((counts > 0).sum()))
        return torch.repeat_interleave(counts).cpu().numpy(), rows.cpu().numpy()


def _hidden(settings: Generator, graphs: GraphSet, stream: int) -> Ints:
    """Return the nodes that are hidden: the share of all, one at least, and one fewer than all at most."""
    nodes = graphs.topology.num_nodes
    count = min(max(1, int(settings.hidden_share * nodes + 0.5)), nodes - 1)
    return np.sort(permutation(stream, nodes)[:count])


def _batch(graphs: GraphSet, part: Impaired, device: torch.device | str) -> Batch:
    """Return the impaired graph with the training examples that are left; its features are not read."""
    assert graphs.places is not None
    kept = np.isin(graphs.places, part.kept)
    places, labels = np.searchsorted(part.kept, graphs.places[kept]), graphs.labels[kept]
    nodes = len(part.kept)
    table = np.zeros((1, 1), np.float32)
    impaired_graph = GraphSet(part.topology, table, np.zeros(nodes, np.int64), labels, places=places)
    return Batch.of(impaired_graph, device)
