"""MPNN's layer compiled: FedGraphNN's Eq. 1 with one product per row for receivers and one for senders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedmpi.graphs.csr import Csr
from fedmpi.graphs.products import Floats, Ints
from fedmpi.graphs.refinement.levels import Levels
from fedmpi.graphs.refinement.quotient import Quotient
from fedmpi.kernels import message_loops as kernels
from fedmpi.kernels.layers import Back, Layer, Layered, identity, matrices_of, places_of, split
from fedmpi.kernels.linear_map import LinearMap
from fedmpi.kernels.norm_loops import add_rows
from fedmpi.kernels.scratch import Scratch
from fedmpi.models.flat import FlatModel


@dataclass(frozen=True)
class Sent(Layered):
    """What the layer keeps: what rows give as receivers and senders [p, h], and kinds of edges [K, h].

    `sums` [n, h] are the messages'.
    """

    to: Floats
    of: Floats
    bonds: Floats
    sums: Floats


class FastMessages(Layer):
    """``U [h_i, sum_j relu(M [h_i, h_j, e_ij])]``, then ReLU; M and U are maps of what they stand before.

    Parameters
    ----------
    model : FlatModel
    name : str
        Of the layer in the module: M [h, 2 h + A] and U [h, 2 h].
    scratch : Scratch
    """

    keeps_input = True

    def __init__(self, model: FlatModel, name: str, scratch: Scratch) -> None:
        messages, updates = f"{name}.messages", f"{name}.updates"
        hidden, inputs = model.by_name[f"{messages}.weight"].shape
        own, other = slice(hidden), slice(hidden, 2 * hidden)
        self._to = LinearMap(model, messages, columns=own)
        self._of = LinearMap(model, messages, bias=False, columns=other)
        self._keep = LinearMap(model, updates, bias=False, columns=own)
        self._take = LinearMap(model, updates, columns=other)
        self._maps = [self._to, self._of, self._keep, self._take]
        self._bonds = None
        if inputs > 2 * hidden:
            columns = slice(2 * hidden, inputs)
            self._bonds = LinearMap(model, messages, bias=False, columns=columns, padded_inputs=False)
            self._maps.append(self._bonds)
        self._width, self._scratch = self._to.width, scratch

    def apply(self, number: int, batch: Quotient, x: Floats) -> Sent:
        """Run the layer in training."""
        matrix, row_of = matrices_of(number, batch)[0], places_of(number, batch)
        return self._run(f" {number}", f"out {number}", matrix, batch.bonds, x, row_of)

    def evaluate(self, number: int, graphs: Levels, first: int, x: Floats) -> Floats:
        """See `Layer.evaluate`."""
        into = f"level {number % 2}"
        return self._run("", into, graphs.layers[first], graphs.bonds, x, np.zeros(0, np.int32)).out

    def back(self, number: int, batch: Quotient, gradient: Floats, x: Floats, done: Sent) -> Back:
        """Return the identity and the gradient of `x`. See `Layer.back`."""
        near, own = split(matrices_of(number, batch)[0])
        sums, kept = self._room("sums gradient", len(own)), self._room("kept gradient", len(x))
        self._take.add_gradients(gradient, done.sums)
        self._take.apply_back(gradient, sums)
        kept[:] = 0
        add_rows(gradient, own, kept)
        to, of = self._room("to gradient", len(x)), self._room("of gradient", len(x))
        bonds = np.empty_like(done.bonds)
        kernels.send_back(
            near.pointers, near.columns, near.weights, own, done.to, done.of, done.bonds, sums, to, of, bonds
        )
        if self._bonds is not None:
            self._bonds.add_gradients_by_columns(bonds, batch.bonds)
        x_gradient, more = self._room(f"input gradient {number % 2}", len(x)), self._room("more", len(x))
        x_gradient[:] = 0
        for part, rows in ((self._keep, kept), (self._to, to), (self._of, of)):
            part.add_gradients(rows, x)
            part.apply_back(rows, more)
            x_gradient += more
        return identity(len(x)), x_gradient

    def flops(self, matrices: Sequence[Csr], bonds: Floats) -> tuple[int, int]:
        """Count products of rows seen and of receivers, and sums over edges, three of them going back."""
        near, own = split(matrices[0])
        product = 2 * (3 * near.width + len(own)) * self._width * self._width
        kinds = 2 * bonds.size * self._width if self._bonds is not None else 0
        sums = near.num_entries * self._width
        return product + kinds + sums, 2 * product + kinds + 3 * sums

    def _run(self, number: str, into: str, matrix: Csr, bonds: Floats, x: Floats, row_of: Ints) -> Sent:
        near, own = split(matrix)
        to, of, keep = (self._room(name + number, len(x)) for name in ("to", "of", "carried"))
        sums, out = self._room("message sums" + number, len(own)), self._room(into, len(own))
        kinds = np.zeros((len(bonds), self._width), np.float32)
        self._to.apply(x, to, relu=False)
        self._of.apply(x, of, relu=False)
        self._keep.apply(x, keep, relu=False)
        if self._bonds is not None:
            self._bonds.apply(bonds, kinds, relu=False)
        kernels.send(near.pointers, near.columns, near.weights, own, to, of, kinds, sums)
        self._take.apply(sums, out, relu=False)
        kernels.add_own(out, keep, own)
        return Sent(out, row_of, to, of, kinds, sums)

    def _room(self, name: str, rows: int) -> Floats:
        return self._scratch(name, rows, self._width)
