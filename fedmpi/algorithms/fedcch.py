"""FedCCH: clients grouped in every round by a hash of their mean graph embedding.

Jiao et al., IJCAI 2025, doi 10.24963/ijcai.2025/333, section 4. After its local
epochs a client embeds its training graphs, averages the embeddings (Eq. 9),
hashes the mean to 64 bits and sends these with its model. The server clusters
the clients by the Hamming similarity of their signatures (Eq. 11) and averages
the models of each cluster by training graphs (Eq. 13). The personalised factor,
GraphNorm after each convolution (Eq. 6, ``model.norm = "graph"``), stays at home.
With ``model.norm = "batch"`` this is the paper's "FedCCH-PF", FedCCH minus PF.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedmpi.algorithms import signatures as sign
from fedmpi.algorithms import similarity_clusters as cluster
from fedmpi.algorithms.base import Algorithm, AlgorithmOptions, Fields, Floats, Ints
from fedmpi.algorithms.program import Client, Message, Server
from fedmpi.algorithms.recorded import field, pairs_field, record_pairs
from fedmpi.errors import BadInput
from fedmpi.heterogeneity.agreement import adjusted_rand_index
from fedmpi.models.options import ModelOptions
from fedmpi.seeds import Purpose, key, words

_AGREEMENT = "domain_agreement"


class FedCchOptions(AlgorithmOptions):
    """Options of the clustering; the paper names hash, hierarchical clustering and k-means only."""

    name: Literal["fedcch"] = "fedcch"
    signature: Literal["hash", "embedding", "random"] = "hash"
    """What clients are grouped by: a hash of the mean embedding; the embedding itself, compared by cosine
    (the paper's ablation); or random bits, the control that knows nothing of the client."""
    method: Literal["hierarchical", "k-means"] = "hierarchical"
    """Of clustering; "k-means" on the bits, or on the embeddings at length 1."""
    linkage: cluster.Linkage = "average"
    """Of the tree; for method = "hierarchical"."""
    cut: Literal["silhouette", "clusters", "distance"] = "silhouette"
    """Where the tree is cut: at the best mean silhouette, at a number of clusters, or at a distance."""
    clusters: int = Field(2, ge=1)
    """Clusters of cut = "clusters"."""
    distance: float = Field(0.3, gt=0)
    """Distance 1 - E of cut = "distance"; its root for Ward's method."""
    pf: Literal["local", "shared"] = "local"
    """Whether GraphNorm, the personalised factor, stays with the client or is averaged."""

    added: ClassVar[frozenset[str]] = frozenset({"pf"})


class FedCch(Algorithm):
    """One model per cluster of the round."""

    name = "fedcch"
    paper = "Jiao et al., IJCAI 2025, section 4"
    Options = FedCchOptions
    options: FedCchOptions
    decides = frozenset({"groups"})
    needs_labels = True

    def shares(self, name: str, share: str) -> bool:
        """Return whether a tensor leaves the client; GraphNorm's do if ``pf`` says so."""
        if name.startswith("graph_norm."):
            return self.options.pf == "shared"
        return super().shares(name, share)

    def validate(self, model: ModelOptions) -> None:
        """Refuse embeddings longer than the hash, and options that would not be read."""
        if self.options.signature != "embedding" and model.hidden != sign.BITS:
            raise BadInput(
                f"hashes {sign.BITS} channels to {sign.BITS} bits: model.hidden must be {sign.BITS}"
            )
        if self.options.pf == "shared" and "graph" not in model.norms:
            raise BadInput('reads pf for a model with GraphNorm only: model.norm = "graph"')
        options, usual = self.options, type(self.options).model_fields
        if options.method == "k-means" and options.cut == "distance":
            raise BadInput('k-means has no distance to cut at: use cut = "clusters" or "silhouette"')
        for name, reader in (("linkage", "method"), ("clusters", "cut"), ("distance", "cut")):
            read = getattr(options, reader) == {"linkage": "hierarchical"}.get(name, name)
            if not read and getattr(options, name) != usual[name].default:
                raise BadInput(
                    f"does not read {name} with {reader} = {getattr(options, reader)}: leave it out"
                )

    def warm_up(self) -> None:
        """Import scipy and scikit-learn before rounds are timed."""
        similarity = sign.hash_similarity(np.arange(4, dtype=np.uint64), sign.BITS)
        self._divide(0, 0, similarity, np.eye(4))

    def messages(self, model: ModelOptions, classes: int) -> Mapping[str, Message]:
        """Return the signature, or the mean embedding in single precision."""
        if self.options.signature == "embedding":
            return {"embedding": Message((model.hidden,))}
        return {"signature": Message((1,), "u8")}

    def trained(self, client: Client) -> None:
        """Send what the server groups clients by."""
        if self.options.signature == "random":
            stream = key(client.seed, Purpose.SIGNATURE, client.id, client.round)
            client.send("signature", words(stream, 1))
        elif self.options.signature == "embedding":
            client.send("embedding", client.mean_embedding().astype(np.float32))
        else:
            client.send("signature", np.array([sign.average_hash(client.mean_embedding())]))

    def decide(self, server: Server) -> None:
        """Form the clusters of the round."""
        if self.options.signature == "embedding":
            rows = server.messages["embedding"]
            similarity, points = sign.cosine_similarity(rows), sign.unit_rows(rows)
        else:
            signatures = server.messages["signature"][:, 0]
            similarity = sign.hash_similarity(signatures, sign.BITS)
            points = sign.bit_rows(signatures, sign.BITS)
            server.record("signature", signatures)
        record_pairs(server, "similarity", [(server.participants, similarity)])
        server.regroup(self._divide(server.seed, server.round, similarity, points))
        index = adjusted_rand_index(server.group, server.domains) if server.domains else np.nan
        server.record(_AGREEMENT, np.array(index))

    def _divide(self, seed: int, round: int, similarity: Floats, points: Floats) -> Ints:
        """Return the clusters by method and cut; `points` [m, h] are what k-means works on."""
        options = self.options
        if len(similarity) == 1:
            return np.zeros(1, np.int64)
        if options.method == "k-means":
            divide = partial(cluster.k_means, points, seed=key(seed, Purpose.GROUPING, round))
        else:
            merges = cluster.tree(similarity, options.linkage)
            if options.cut == "distance":
                return cluster.cut_at_distance(merges, options.distance)
            divide = partial(cluster.cut_at_number, merges)
        if options.cut == "clusters":
            return divide(min(options.clusters, len(similarity)))
        return cluster.best_silhouette(similarity, divide)

    def fields(self, num_clients: int) -> Fields:
        """Return signatures, similarities, and the agreement of clusters and domains."""
        agreement = "adjusted Rand index of the round's clusters and the domains of the clients' datasets"
        bits = "average hash of the client's mean graph embedding, or random bits; bit d of channel d"
        alike = "similarity of two clients, Eq. 11 (or cosine of their embeddings), 1 on the diagonal"
        hashed = self.options.signature != "embedding"
        return (
            field(_AGREEMENT, agreement, ("round",)),
            *([field("signature", bits, dtype="u8")] if hashed else []),
            *pairs_field("similarity", alike, num_clients),
        )
