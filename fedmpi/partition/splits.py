"""Training, validation and test graphs of one client: 80, 10 and 10 percent, stratified by class.

The released codes split with scikit-learn's ``train_test_split``. The same draws are made here, by NumPy's
legacy generator: so a split depends on no version of that library, and no rank spends two seconds to import
it. ``tests/partition/test_splits.py`` holds both against each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.errors import BadInput

Int = npt.NDArray[np.int64]

MIN_GRAPHS = 6
"""The least number of graphs that leaves none of the three parts empty (4, 1, 1)."""


@dataclass(frozen=True)
class Split:
    """Graph numbers of the three parts, int64, and whether class shares were kept in both steps."""

    train: Int
    val: Int
    test: Int
    stratified: bool


def _halve(graphs: Int, labels: Int, first: float, seed: int) -> tuple[Int, Int, bool]:
    """Split once, stratified by class where that is possible; a graph that fits neither part is left out."""
    sizes = math.floor(first * len(graphs)), math.ceil(round(1 - first, 9) * len(graphs))
    try:
        return *two_strata(graphs, labels[graphs], *sizes, seed), True
    except ValueError:
        return *two_samples(graphs, *sizes, seed), False


def split(
    graphs: Int, labels: Int, seed: int, client: str, shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
) -> Split:
    """Split a client's graphs as GCFL's code does: 80/20, then the 20 in halves, both stratified.

    Parameters
    ----------
    graphs : int64 [n]
        Graph numbers in the dataset; repeats allowed (they may then cross the parts).
    labels : int64 [G]
        Class of every graph of the dataset.
    seed : int
        Split seed.
    client : str
        Name for messages.
    shares : (float, float, float)
        Of training, validation and test.

    Returns
    -------
    Split
        A step that cannot be stratified is drawn without, and `stratified` is False.

    Raises
    ------
    BadInput
        Fewer graphs than `MIN_GRAPHS`.
    """
    if len(graphs) < MIN_GRAPHS:
        raise BadInput(
            f"{client} has {len(graphs)} examples, too few for training, validation and test: "
            f"at least {MIN_GRAPHS} are needed; use fewer clients or a larger dataset"
        )
    train, rest, first = _halve(graphs, labels, shares[0], seed)
    val, test, second = _halve(rest, labels, round(shares[1] / (shares[1] + shares[2]), 9), seed)
    return Split(train, val, test, first and second)


def subsample(graphs: Int, labels: Int, size: int, seed: int, client: str) -> Int:
    """Return `size` of the graphs, stratified by class (GCFL's ``_tiny`` groups).

    Parameters
    ----------
    graphs : int64 [n]
        Numbers of the graphs to choose from.
    labels : int64 [graphs of the dataset]
        Class of each graph.
    size, seed : int
    client : str
        Name of the client, for the message.

    Raises
    ------
    BadInput
        The dataset is too small to draw from.
    """
    try:
        drawn, _ = two_strata(graphs, labels[graphs], size, len(graphs) - size, seed)
    except ValueError as error:
        raise BadInput(f"cannot draw {size} stratified graphs from the {len(graphs)} of {client}") from error
    return drawn


def two_samples(items: Int, first: int, second: int, seed: int) -> tuple[Int, Int]:
    """Return `first` and `second` of the items, drawn without replacement."""
    order = np.random.RandomState(seed).permutation(len(items))
    return items[order[second : second + first]], items[order[:second]]


def two_strata(items: Int, classes: npt.ArrayLike, first: int, second: int, seed: int) -> tuple[Int, Int]:
    """Return `first` and `second` of the items, with the shares of the classes in both.

    Parameters
    ----------
    items : int64 [n]
    classes : int [n]
        Class of each item.
    first, second : int
        Sizes; together at most n.
    seed : int

    Raises
    ------
    ValueError
        A class has one member, or a sample fewer places than there are classes.
    """
    _, class_of, counts = np.unique(np.asarray(classes), return_inverse=True, return_counts=True)
    if counts.min() < 2 or min(first, second) < len(counts):
        raise ValueError("too few items of a class")
    members = np.split(np.argsort(class_of, kind="stable"), np.cumsum(counts)[:-1])
    generator = np.random.RandomState(seed)
    ends = _places(counts, first, generator)
    others = _places(counts - ends, second, generator)
    drawn = [own[generator.permutation(len(own))] for own in members]
    left = [own[:end] for own, end in zip(drawn, ends, strict=True)]
    right = [own[end : end + more] for own, end, more in zip(drawn, ends, others, strict=True)]
    return (
        items[generator.permutation(np.concatenate(left))],
        items[generator.permutation(np.concatenate(right))],
    )


def _places(counts: Int, size: int, generator: np.random.RandomState) -> Int:
    """Return how many places of a sample each class gets: its share, the largest remainders rounded up."""
    shares = counts / counts.sum() * size
    places: Int = np.floor(shares).astype(np.int64)
    missing, remainders = size - int(places.sum()), shares - places
    for remainder in np.unique(remainders)[::-1]:
        if not missing:
            break
        (tied,) = np.nonzero(remainders == remainder)
        taken = generator.choice(tied, size=min(len(tied), missing), replace=False)
        places[taken] += 1
        missing -= len(taken)
    return places
