"""HierFAVG: edge servers average their clients in every round, the cloud all edges in every few rounds.

Liu, Zhang, Song and Letaief, "Client-edge-cloud hierarchical federated learning", ICC 2020, Algorithm 1. The
paper's kappa_1 is the case's `local_epochs`, counted in epochs, its kappa_2 is `cloud_every`. Edges weigh by
training graphs: where the cloud averages, the mean of the edges' models is that of all clients' models, which
is what is computed. All clients take part, as in the paper.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Ints
from fedmpi.algorithms.program import Server
from fedmpi.errors import BadInput


class HierFavgOptions(AlgorithmOptions):
    """Options of the edges and the cloud."""

    name: Literal["hierfavg"] = "hierfavg"
    edges: int = Field(2, ge=1)
    """Edge servers; each has as many clients as the others, or one more, in their order."""
    cloud_every: int = Field(2, ge=1)
    """Rounds from one average of the cloud to the next (kappa_2); 1 is FedAvg."""


class HierFavg(Algorithm):
    """One model per edge, and one for all where the cloud averages."""

    name = "hierfavg"
    paper = "Liu et al., ICC 2020, Algorithm 1"
    Options = HierFavgOptions
    options: HierFavgOptions
    decides = frozenset({"groups"})

    def remark(self, participants: int, one_step: bool) -> str:
        """Return that this is FedAvg, where it is."""
        alone = 1 in (self.options.edges, self.options.cloud_every)
        return "the cloud averages all clients in every round, so this is FedAvg" if alone else ""

    def groups(self, num_clients: int) -> Ints:
        """Return the edge of each client, int64 [clients]; each edge has one, or more."""
        if self.options.edges > num_clients:
            raise BadInput(
                f"algorithm hierfavg: edges = {self.options.edges} need as many clients, or more, and there "
                f"are {num_clients}: use fewer edges"
            )
        return np.arange(num_clients, dtype=np.int64) * self.options.edges // num_clients

    def decide(self, server: Server) -> None:
        """Have each edge average its clients, or the cloud all."""
        edges = self.groups(len(server.group))
        by_cloud = (server.round + 1) % self.options.cloud_every == 0
        server.regroup(np.zeros_like(edges) if by_cloud else edges)
