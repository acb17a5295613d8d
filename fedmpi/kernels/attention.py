"""GAT's layer compiled: a linear map, attention over closed neighbourhoods, ReLU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedmpi.graphs import products
from fedmpi.graphs.csr import Csr
from fedmpi.graphs.products import Floats, Ints, padded
from fedmpi.graphs.refinement.levels import Levels
from fedmpi.graphs.refinement.quotient import Quotient
from fedmpi.kernels import attention_loops as kernels
from fedmpi.kernels.layers import Back, Layer, Layered, identity, matrices_of, places_of, split
from fedmpi.kernels.linear_map import LinearMap, add_gradients, views
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.flat import FlatModel


@dataclass(frozen=True)
class Attended(Layered):
    """Saved for the backward pass: states [p, h], scores [p, 2 H, padded], shares [E, H]."""

    states: Floats
    scores: Floats
    shares: Floats


class FastAttention(Layer):
    """One layer of torch-geometric's GATConv, whose heads stand beside each other.

    Parameters
    ----------
    model : FlatModel
    name : str
        Of the layer in the module: a map without bias, vectors of receivers and senders, [1, H, h'] each, and
        the bias [h].
    slope : float
        Of LeakyReLU below 0.
    scratch : Scratch
    """

    keeps_input = True

    def __init__(self, model: FlatModel, name: str, slope: float, scratch: Scratch) -> None:
        self._states, self._scratch = LinearMap(model, f"{name}.lin", bias=False), scratch
        self._maps, self._width = [self._states], self._states.width
        receiver, sender, bias = (views(model, f"{name}.{part}") for part in ("att_dst", "att_src", "bias"))
        self._attend, self._attend_gradients = zip(receiver, sender, strict=True)
        self._bias_values, self._bias_gradient = bias
        _, heads, part = receiver[0].shape
        self._heads = kernels.Heads(heads, part, np.float32(slope))
        self._bias = np.zeros(self._width, np.float32)
        self._scores = np.zeros((padded(2 * heads), self._width), np.float32)
        """Row ``side H + head`` has a head's vector in the head's columns: one product gives all scores."""

    def load(self) -> None:
        """Take over the model's parameters."""
        super().load()
        self._bias[: len(self._bias_values)] = self._bias_values
        for row, columns, side, head in self._blocks():
            self._scores[row, columns] = self._attend[side][0, head]

    def apply(self, number: int, batch: Quotient, x: Floats) -> Attended:
        """Run the layer in training."""
        names = [f"{name} {number}" for name in ("states", "scores", "shares", "out")]
        return self._run(names, matrices_of(number, batch)[0], x, places_of(number, batch))

    def evaluate(self, number: int, graphs: Levels, first: int, x: Floats) -> Floats:
        """See `Layer.evaluate`."""
        names = ("states", "scores", "shares", f"level {number % 2}")
        return self._run(names, graphs.layers[first], x, np.zeros(0, np.int32)).out

    def back(self, number: int, batch: Quotient, gradient: Floats, x: Floats, done: Attended) -> Back:
        """Return the identity and the gradient of `x`. See `Layer.back`."""
        near = _near(matrices_of(number, batch)[0])
        self._bias_gradient += gradient.sum(axis=0, dtype=np.float64)[: len(self._bias_gradient)]
        states = self._scratch("states gradient", *done.states.shape)
        scores = self._scratch("scores gradient", *done.scores.shape)
        kernels.attend_back(
            near, self._heads, done.states, done.scores, done.shares, gradient, states, scores
        )
        self._scores_back(scores, done.states, states)
        self._states.add_gradients(states, x)
        x_gradient = self._scratch(f"input gradient {number % 2}", len(x), self._width)
        self._states.apply_back(states, x_gradient)
        return identity(len(x)), x_gradient

    def flops(self, matrices: Sequence[Csr], bonds: Floats) -> tuple[int, int]:
        """Count products with states and scores, and the sums over neighbourhoods."""
        near, _ = split(matrices[0])
        product = 2 * near.width * self._width * (self._width + len(self._scores))
        sums = 2 * near.num_entries * self._width
        return product + sums, 2 * product + 2 * sums

    def _run(self, names: Sequence[str], matrix: Csr, x: Floats, row_of: Ints) -> Attended:
        near = _near(matrix)
        widths = (self._width, len(self._scores), self._heads.number, self._width)
        counts = (len(x), len(x), len(near.columns), len(near.own))
        room = [self._scratch(*each) for each in zip(names, counts, widths, strict=True)]
        states, scores, shares, out = room
        self._states.apply(x, states, relu=False)
        products.multiply(states, np.ascontiguousarray(self._scores.T), scores)
        kernels.attend(near, self._heads, states, scores, self._bias, shares, out)
        return Attended(out, row_of, states, scores, shares)

    def _scores_back(self, scores: Floats, states: Floats, states_gradient: Floats) -> None:
        """Add to the gradients of the attention's vectors and of the states what the scores give."""
        vectors_gradient = np.zeros_like(self._scores)
        add_gradients(scores, states, vectors_gradient, np.zeros(len(vectors_gradient), np.float32))
        for row, columns, side, head in self._blocks():
            self._attend_gradients[side][0, head] += vectors_gradient[row, columns]
        more = self._scratch("states gradient of scores", *states.shape)
        products.multiply(scores, self._scores, more)
        states_gradient += more

    def _blocks(self) -> list[tuple[int, slice, int, int]]:
        """Return row and columns of each side's and head's vector in `_scores`."""
        heads, part, _ = self._heads
        return [
            (side * heads + head, slice(head * part, (head + 1) * part), side, head)
            for side in range(2)
            for head in range(heads)
        ]


def _near(matrix: Csr) -> kernels.Near:
    upper, own = split(matrix)
    return kernels.Near(upper.pointers, upper.columns, upper.weights, own)
