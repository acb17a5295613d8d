"""Agreement of clusters of clients with the domains of their datasets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.tables import DOMAINS

Int = npt.NDArray[np.int64]


def domains_of(datasets: Sequence[str]) -> tuple[str, ...] | None:
    """Return the domain of each dataset; None where one's is not known, or all are of one domain."""
    found = tuple(DOMAINS[name] for name in datasets if name in DOMAINS)
    return found if len(found) == len(datasets) and len(set(found)) > 1 else None


def adjusted_rand_index(group: Int, domains: Sequence[str]) -> float:
    """Return the adjusted Rand index (Hubert and Arabie 1985) of clusters and domains."""
    from sklearn.metrics import adjusted_rand_score

    reference = np.unique(np.asarray(domains), return_inverse=True)[1]
    return float(adjusted_rand_score(reference, group))
