"""Krum and multi-Krum: the server takes the updates that lie closest to their nearest neighbours.

Blanchard, El Mhamdi, Guerraoui and Stainer, "Machine learning with adversaries: Byzantine tolerant
gradient descent", NeurIPS 2017, sections 4 (Krum) and 5 (multi-Krum). There clients send gradients; here
they send the updates of their local training. Running statistics count in no distance, but follow the
choice.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import AlgorithmOptions, Floats, Ints, Rows
from fedmpi.algorithms.robust import Robust
from fedmpi.errors import BadInput


class KrumOptions(AlgorithmOptions):
    """Options of Krum and multi-Krum."""

    name: Literal["krum"] = "krum"
    f: int = Field(1, ge=0)
    """Byzantine clients that are tolerated, among more than 2 f + 2."""
    m: int = Field(1, ge=1)
    """Best updates, which are averaged: 1 is Krum, more is multi-Krum."""


class Krum(Robust):
    """One global model that moves by the mean of the m updates with the least scores."""

    name = "krum"
    paper = "Blanchard et al., NeurIPS 2017, sections 4 and 5"
    Options = KrumOptions
    options: KrumOptions

    def participants(self, seed: int, round: int, num_clients: int, fraction: float) -> Ints:
        """Return the clients of the round, of whom there must be enough for f and m.

        See `Algorithm.participants`.
        """
        chosen = super().participants(seed, round, num_clients, fraction)
        least = max(2 * self.options.f + 3, self.options.m)
        if len(chosen) < least:
            raise BadInput(
                f"algorithm krum: f = {self.options.f} and m = {self.options.m} need {least} clients in a "
                f"round or more (2 f + 3, and m), there are {len(chosen)}: lower them, or take more clients"
            )
        return chosen

    def aggregate(self, rows: Rows, trained: int) -> Floats:
        """Return the mean of the m rows with the least scores; of equal ones, those of lower clients."""
        order = np.argsort(scores(rows[:, :trained], self.options.f), kind="stable")
        selected = np.sort(order[: self.options.m])
        mean: Floats = np.add.reduce(rows[selected].astype(np.float64), axis=0) / len(selected)
        return mean


def scores(rows: Rows, f: int) -> Floats:
    """Return each row's sum of squared distances to the k - f - 2 rows nearest to it, float64 [k].

    Summed pairwise by NumPy: the same on any BLAS.
    """
    wide = rows.astype(np.float64)
    count = len(wide)
    squared = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            squared[i, j] = squared[j, i] = np.sum(np.square(wide[i] - wide[j]))
    others = np.sort(squared + np.diag(np.full(count, np.inf)), axis=1)
    found: Floats = np.sum(others[:, : count - f - 2], axis=1)
    return found
