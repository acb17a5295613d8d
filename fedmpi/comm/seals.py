"""Checksums behind the parts that are gathered."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.errors import RankFailed

Array = npt.NDArray[Any]

SEAL = 8
"""Bytes behind each part that is gathered: a checksum of it."""


def sealed(part: Array) -> Array:
    """Return a 1-d array with its checksum behind it."""
    tail = SEAL // part.itemsize
    whole = np.empty(len(part) + tail, part.dtype)
    whole[:-tail] = part
    whole[-tail:].view(np.uint64)[0] = _seal(whole[:-tail])
    return whole


def unsealed(whole: Array, rank: int) -> Array:
    """Return what `sealed` was given on a rank.

    Raises
    ------
    RankFailed
        It is not that.
    """
    tail = SEAL // whole.itemsize
    part = whole[:-tail]
    if whole[-tail:].view(np.uint64)[0] != _seal(part):
        raise RankFailed(
            f"the message of rank {rank} arrived damaged: the rank has died, or its network has failed"
        )
    return part


def _seal(part: Array) -> int:
    return zlib.crc32(part.data) | 1 << 32
