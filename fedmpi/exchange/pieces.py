"""Vectors of clients, from the ranks that hold them to rank 0, and out of longer ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fedmpi.comm.collectives import Collectives

Key = TypeVar("Key")
Array = npt.NDArray[Any]


def gather(
    collectives: Collectives,
    held: Sequence[Sequence[Key]],
    length: Callable[[Key], int],
    own: Mapping[Key, npt.ArrayLike],
    dtype: npt.DTypeLike,
    place: str = "",
    kind: str = "gather",
) -> dict[Key, Array] | None:
    """Return a vector of each key on rank 0, rank by rank; None elsewhere (a collective call).

    Parameters
    ----------
    collectives : Collectives
    held : sequence [ranks] of sequences
        Keys of each rank's vectors: a client, for one.
    length : callable
        Returns the elements of a key's vector; the same on every rank.
    own : mapping
        Vectors of the keys that this rank holds.
    dtype : dtype
        Of all vectors.
    place, kind : str, optional
        As for `Collectives.gatherv`.
    """
    mine = [np.asarray(own[key], dtype).reshape(-1) for key in held[collectives.rank]]
    counts = [sum(int(length(key)) for key in keys) for keys in held]
    parts = collectives.gatherv(np.concatenate([np.zeros(0, dtype), *mine]), counts, place, kind=kind)
    if parts is None:
        return None
    found: dict[Key, Array] = {}
    for keys, part in zip(held, parts, strict=True):
        found |= split(part, keys, length)
    return found


def split(whole: Array, keys: Iterable[Key], length: Callable[[Key], int]) -> dict[Key, Array]:
    """Return views of an array by key: each as long as its key says, in the order of the keys."""
    found, end = dict[Key, Array](), 0
    for key in keys:
        start, end = end, end + length(key)
        found[key] = whole[start:end]
    return found
