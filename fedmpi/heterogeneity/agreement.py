"""Agreement of clusters of clients with the domains of their datasets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.tables import DOMAINS
from fedmpi.heterogeneity.clusters import DRAWS, Control, control

Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Agreement:
    """Adjusted Rand index of clusters and domains, beside that of random partitions of the same sizes.

    The index is 1 where clusters are the domains, and 0 on average over random partitions.
    """

    adjusted_rand_index: float
    random: Control


def domains_of(datasets: Sequence[str]) -> tuple[str, ...] | None:
    """Return the domain of each dataset; None where one's is not known, or all are of one domain."""
    found = tuple(DOMAINS[name] for name in datasets if name in DOMAINS)
    return found if len(found) == len(datasets) and len(set(found)) > 1 else None


def adjusted_rand_index(group: Int, domains: Sequence[str]) -> float:
    """Return the adjusted Rand index (Hubert and Arabie 1985) of clusters and domains."""
    from sklearn.metrics import adjusted_rand_score

    reference = np.unique(np.asarray(domains), return_inverse=True)[1]
    return float(adjusted_rand_score(reference, group))


def agreement(group: Int, domains: Sequence[str], seed: int, draws: int = DRAWS) -> Agreement:
    """Return how well clusters and domains agree.

    Parameters
    ----------
    group : int64 [n]
        Cluster of each client.
    domains : sequence of str, length n
        Domain of each client's dataset.
    seed, draws : int
        Seed and number of the random partitions.
    """

    def index(clusters: Int) -> float:
        return adjusted_rand_index(clusters, domains)

    return Agreement(index(group), control(index, group, seed, draws))
