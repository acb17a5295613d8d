"""GCFL: groups divided by the minimum cut of the cosine similarity of their updates.

Xie, Ma, Xiong and Yang, NeurIPS 2021, section 4.3 and Algorithm 1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fedmpi.algorithms.base import Floats, Ints, Rows
from fedmpi.algorithms.clustered import Clustered, ClusteredOptions


class GcflOptions(ClusteredOptions):
    """See `ClusteredOptions`."""

    name: Literal["gcfl"] = "gcfl"


class Gcfl(Clustered):
    """Edge weight of two clients: cosine of their updates, plus 1."""

    name = "gcfl"
    paper = "Xie et al., NeurIPS 2021, section 4.3"
    Options = GcflOptions
    asks = frozenset({"means", "rows"})

    def edges(self, members: Ints, rows: Rows) -> Floats:
        """Return the similarities; an update of zero is similar to nothing (cosine 0)."""
        return cosine(rows) + 1.0


def cosine(rows: Rows) -> Floats:
    """Return the cosine similarities of the rows, float64 [k, k], summed pairwise: the same on any BLAS."""
    wide = rows.astype(np.float64)
    products = np.array([[np.sum(a * b) for b in wide] for a in wide])
    norms = np.sqrt(np.diag(products))
    scale = np.outer(norms, norms)
    similarity: Floats = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    np.fill_diagonal(similarity, 1.0)
    return similarity
