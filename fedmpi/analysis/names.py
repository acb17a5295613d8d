"""What algorithms and datasets are called and how they look, the same in every picture and table."""

from __future__ import annotations

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#8B5A2B")
"""Told apart with any colour vision: seven after Okabe and Ito (2008), and a brown."""

_ALGORITHMS = {
    "self-train": "self-train",
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "gcfl": "GCFL",
    "gcfl-plus": "GCFL+",
    "gcfl-plus-dws": "GCFL+dWs",
}
ORDER = ("fedavg", "fedprox", "gcfl", "gcfl-plus", "gcfl-plus-dws", "self-train")
"""Algorithms in the order in which they are shown."""


def algorithm_name(name: str) -> str:
    """Return an algorithm's name as papers write it."""
    return _ALGORITHMS.get(name, name)


def dataset_name(name: str) -> str:
    """Return a dataset's name as papers write it: MIX for ``gcfl/mix``, the folder's name for own data."""
    last = name.rstrip("/").rpartition("/")[2]
    return last.upper() if name.startswith("gcfl/") else last


def algorithm_place(algorithm: str) -> int:
    """Return an algorithm's place among lines and violins; those of plug-ins come last."""
    return ORDER.index(algorithm) if algorithm in ORDER else len(ORDER)
