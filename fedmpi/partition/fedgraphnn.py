"""FedGraphNN's partition: one split of the dataset, each part of which is dealt out to all clients.

He et al. (2021), appendix B.3, speaks of a Dirichlet draw per class. Their released code draws once
per part, over quantities alone, by NumPy's legacy generator; the published pictures (Figures 6 and
7) are reproduced by that, graph for graph where the dataset has their size.
"""

from __future__ import annotations

import math
import random

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import RawGraphs, strata
from fedmpi.errors import BadInput
from fedmpi.partition.options import FedGraphNN
from fedmpi.partition.splits import two_strata

Int = npt.NDArray[np.int64]
Parts = tuple[Int, Int, Int]

_MOST_DRAWS = 10_000


def deal(options: FedGraphNN, raw: RawGraphs) -> list[Parts]:
    """Return training, validation and test graphs of each client.

    A client may get no validation or test graph; the released code then tests on all clients' graphs,
    as the scores over all clients' graphs do here.

    Raises
    ------
    BadInput
        No scaffolds or no classes to split by, or a client gets no training graph.
    """
    classes, _ = strata(raw)
    legacy = np.random.RandomState(options.seed)
    least = 0 if raw.places is None else 1
    dealt = [_until_enough(options, part, classes, legacy, least) for part in _split(options, raw, classes)]
    clients = list(zip(*dealt, strict=True))
    for number, (train, _, _) in enumerate(clients):
        if not len(train):
            raise BadInput(
                f"client-{number:02d} gets no training graph at alpha {options.alpha:g}: "
                "use a larger alpha, fewer clients or another partition.seed"
            )
    return clients


def _split(options: FedGraphNN, raw: RawGraphs, classes: Int) -> Parts:
    """Return the graphs of the three parts, in the order in which they are dealt out."""
    if options.split == "scaffold":
        return _by_scaffold(raw)
    if options.split == "stratified":
        return _stratified(options, raw, classes)
    plain = random.Random(options.seed)
    order = list(range(len(classes)))
    plain.shuffle(order)
    first = int(0.8 * len(order))
    second = first + int(0.1 * len(order))
    parts = [order[:first], order[first:second], order[second:]]
    for part in parts:
        plain.shuffle(part)
    train, val, test = (np.array(part, np.int64) for part in parts)
    return train, val, test


def _stratified(options: FedGraphNN, raw: RawGraphs, classes: Int) -> Parts:
    """Return 81, 9 and 10 percent, class by class: the released code's split of TU datasets."""
    if raw.task != "classification":
        raise BadInput(f'partition.split = "stratified" needs one class per graph, which {raw.name} has not')
    held = np.arange(len(classes))
    try:
        rest, test = two_strata(held, classes, *_nine_to_one(held), options.seed)
        train, val = two_strata(rest, classes[rest], *_nine_to_one(rest), options.seed)
    except ValueError as error:
        raise BadInput(
            f'partition.split = "stratified" needs more graphs of each class than {raw.name} has: '
            'use "random"'
        ) from error
    return train, val, test


def _nine_to_one(items: Int) -> tuple[int, int]:
    tenth = math.ceil(0.1 * len(items))
    return len(items) - tenth, tenth


def _by_scaffold(raw: RawGraphs) -> Parts:
    """Return parts that share no scaffold: the largest groups train, the smallest test, as MoleculeNet."""
    if raw.scaffolds is None:
        raise BadInput(
            f'partition.split = "scaffold" needs molecules read from SMILES, which {raw.name} has not'
        )
    scaffolds = np.asarray(raw.scaffolds)
    sizes = np.bincount(scaffolds)
    ordered = np.lexsort((np.arange(len(sizes)), -sizes))
    limits = 0.8 * len(scaffolds), 0.9 * len(scaffolds)
    parts: list[list[Int]] = [[], [], []]
    held = [0, 0, 0]
    for scaffold in ordered:
        members = np.flatnonzero(scaffolds == scaffold)
        fits = held[0] + len(members) <= limits[0], sum(held[:2]) + len(members) <= limits[1]
        part = 0 if fits[0] else 1 if fits[1] else 2
        parts[part].append(members)
        held[part] += len(members)
    nothing = np.zeros(0, np.int64)
    train, val, test = (np.concatenate([nothing, *part]) for part in parts)
    return train, val, test


def _until_enough(
    options: FedGraphNN, part: Int, classes: Int, legacy: np.random.RandomState, least: int
) -> list[Int]:
    """Return each client's share of one part; the released code draws anew for ego-networks only."""
    for _ in range(_MOST_DRAWS):
        found = _dealt(options, part, classes, legacy)
        if min(len(each) for each in found) >= min(least, len(part) // options.clients):
            break
    return found


def _dealt(options: FedGraphNN, part: Int, classes: Int, legacy: np.random.RandomState) -> list[Int]:
    """Return each client's graphs of one part."""
    if options.allocation == "uniform":
        return list(np.array_split(part, options.clients))
    groups = [part]
    if options.allocation == "label":
        groups = [part[classes[part] == value] for value in np.unique(classes[part])]
    held: list[list[Int]] = [[] for _ in range(options.clients)]
    for group in groups:
        order = np.arange(len(group))
        legacy.shuffle(order)
        shares = legacy.dirichlet(np.repeat(options.alpha, options.clients))
        cuts = (np.cumsum(shares / shares.sum()) * len(group)).astype(int)[:-1]
        for client, places in enumerate(np.split(order, cuts)):
            held[client].append(group[places])
    return [np.concatenate(pieces) for pieces in held]
