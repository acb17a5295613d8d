"""Two random samples of one set, stratified by class: the draws of scikit-learn's ``train_test_split``.

The released codes split with scikit-learn. The same draws are made here, by NumPy's legacy generator: so a
split depends on no version of that library, and no rank spends two seconds to import it.
``tests/partition/test_strata.py`` holds both against each other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]


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
