"""What algorithms and datasets are called and how they look, the same in every picture and table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#555555", "#56B4E9", "#8B5A2B")
"""Told apart with any colour vision: seven after Okabe and Ito (2008), and a brown."""

_ALGORITHMS = {
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "gcfl": "GCFL",
    "gcfl-plus": "GCFL+",
    "gcfl-plus-dws": "GCFL+dWs",
    "self-train": "self-train",
    "centralised": "centralised",
    "ditto": "Ditto",
    "scaffold": "SCAFFOLD",
    "fedper": "FedPer",
    "fedbn": "FedBN",
    "fedstar": "FedStar",
    "fedcch": "FedCCH",
    "fednova": "FedNova",
    "q-fedavg": "q-FedAvg",
    "fedsgd": "FedSGD",
    "fedavgm": "FedAvgM",
    "fedadagrad": "FedAdagrad",
    "fedadam": "FedAdam",
    "fedyogi": "FedYogi",
    "median": "median",
    "trimmed-mean": "trimmed-mean",
    "krum": "Krum",
    "feddyn": "FedDyn",
    "fedrep": "FedRep",
    "apfl": "APFL",
    "fedala": "FedALA",
    "moon": "MOON",
    "fedproto": "FedProto",
    "fedgta": "FedGTA",
    "fedpub": "FED-PUB",
    "fedsage-plus": "FedSage+",
    "hierfavg": "HierFAVG",
    "pfedme": "pFedMe",
    "fedfomo": "FedFomo",
    "fedas": "FedAS",
    "one-shot": "one-shot ensemble",
    "flit": "FLIT",
    "flit-plus": "FLIT+",
    "fedvn": "FedVN",
    "fedtad": "FedTAD",
}
"""Names as papers write them, in the order in which algorithms take colours and dashes."""

_FORMS = {
    "fedavg-again": "FedAvg tuned again",
    "one-shot-mean": "one-shot averaging",
    "dfedavgm": "DFedAvgM",
    "fedbuff": "FedBuff",
    "top-k": "top-k FedAvg",
}
"""Forms of FedAvg that tracks of the leaderboard have as methods of their own."""

ORDER = tuple(_ALGORITHMS)[:6]
"""Algorithms in the order in which they are shown, before all others."""

_OBJECTIVES = {
    "infograph": "InfoGraph",
    "mvgrl": "MVGRL",
    "fclg": "FCLG",
    "fclg-h": "FCLG-H",
    "intra": "Intra",
    "intra-kl": "Intra-KL",
    "intra-mse": "Intra-MSE",
}
_WITH_FEDAVG = ("fclg", "fclg-h", "intra-kl", "intra-mse")
"""Objectives that FCLG's tables name alone where the algorithm is FedAvg."""


def algorithm_name(name: str) -> str:
    """Return an algorithm's name as papers write it."""
    return _ALGORITHMS.get(name) or _FORMS.get(name, name)


def dataset_name(name: str) -> str:
    """Return a dataset's name as papers write it: MIX for ``gcfl/mix``, the folder's name for own data."""
    last = name.rstrip("/").rpartition("/")[2]
    return last.upper() if name.startswith(("gcfl/", "fedcch/", "fedstar/")) else last


def algorithm_place(algorithm: str) -> int:
    """Return an algorithm's place among lines and violins; those of plug-ins come last."""
    return ORDER.index(algorithm) if algorithm in ORDER else len(ORDER)


def algorithm_looks(algorithms: Iterable[str], dashes: int) -> dict[str, int]:
    """Return numbers from which, modulo how many there are, colours and dashes of some algorithms follow.

    An algorithm has its own number where that colour is free, else that of a free colour; where there is
    none, the dashes tell it apart.
    """
    known, found = tuple(_ALGORITHMS), dict[str, int]()
    for name in sorted(set(algorithms), key=lambda each: (*known, each).index(each)):
        own = (*known, name).index(name)
        taken = [(look % len(COLOURS), look % dashes) for look in found.values()]
        looks = range(own, own + len(COLOURS) * dashes)
        free = [look for look in looks if (look % len(COLOURS), look % dashes) not in taken]
        colours = {colour for colour, _ in taken}
        unused = (look for look in free if look % len(COLOURS) not in colours)
        found[name] = next(unused, next(iter(free), own))
    return found


def reference_among(names: Sequence[str], wanted: str | None) -> str:
    """Return which of some names others are set against: the wanted, else FedAvg, "none" or the first."""
    asked = (each for each in names if wanted in (each, algorithm_name(each)))
    return next(asked, next((usual for usual in ("fedavg", "none") if usual in names), names[0]))


def joined(names: Sequence[str]) -> str:
    """Return names with commas and an "and"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def unsupervised_name(objective: str, algorithm: str) -> str:
    """Return an unsupervised method's name as FCLG's tables write it: InfoGraph-FedProx, FCLG."""
    name = _OBJECTIVES.get(objective, objective)
    alone = objective in _WITH_FEDAVG and algorithm == "fedavg"
    return name if alone else f"{name}-{algorithm_name(algorithm)}"


def known_objective(objective: str) -> bool:
    """Return whether an objective is one of the unsupervised ones that papers name."""
    return objective in _OBJECTIVES


def objective_place(objective: str) -> int:
    """Return an objective's place among lines; unknown ones come last."""
    known = list(_OBJECTIVES)
    return known.index(objective) if objective in known else len(known)
