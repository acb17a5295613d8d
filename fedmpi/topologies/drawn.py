"""Random graphs, drawn once for a run: of equal degree, or of independent edges."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.errors import BadInput
from fedmpi.seeds import Purpose, generator, key
from fedmpi.topologies.base import Ints, TopologyOptions, both_ways


class RegularOptions(TopologyOptions):
    """A random graph in which all have the same number of neighbours (networkx draws it)."""

    paper: ClassVar[str] = "Kim and Vu, STOC 2003"
    name: Literal["regular"] = "regular"
    degree: int = Field(4, ge=2, le=1_000_000)
    """Neighbours of each client."""

    def links(self, num_clients: int, turn: int, seed: int) -> Ints:
        """See `TopologyOptions`."""
        if self.degree >= num_clients:
            raise BadInput(f"{num_clients} clients have {num_clients - 1} neighbours at most: use fewer")
        if self.degree * num_clients % 2:
            raise BadInput(f"{num_clients} clients cannot have {self.degree} each: use an even degree")
        import networkx as nx  # takes long to import

        # It takes forever where few pairs are no edges: then these are drawn.
        others = num_clients - 1 - self.degree
        graph = nx.random_regular_graph(min(self.degree, others), num_clients, key(seed, Purpose.TOPOLOGY))
        return both_ways(list((graph if self.degree <= others else nx.complement(graph)).edges))


class ErdosRenyiOptions(TopologyOptions):
    """Each two clients are neighbours with the same probability; refused where that is not connected."""

    paper: ClassVar[str] = "Erdős and Rényi, 1959"
    name: Literal["erdos-renyi"] = "erdos-renyi"
    p: float = Field(0.3, gt=0, le=1)
    """Probability of an edge."""

    def links(self, num_clients: int, turn: int, seed: int) -> Ints:
        """See `TopologyOptions`."""
        pairs = np.stack(np.triu_indices(num_clients, 1), axis=1)
        drawn = generator(key(seed, Purpose.TOPOLOGY)).random(len(pairs))
        return both_ways(pairs[drawn < self.p])
