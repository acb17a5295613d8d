"""Random numbers as a pure function of (run seed, purpose, client, round, step, layer, element).

A *key* is a 64-bit hash of the coordinates; element ``i`` of its stream is
SplitMix64 at counter ``i`` (Steele, Lea and Flood 2014), so any kernel can draw
any element in any order and get the same bits.
"""

from __future__ import annotations

import hashlib
from enum import IntEnum

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class Purpose(IntEnum):
    """What a random number is for; the codes are part of the numerics version."""

    INIT = 1
    SHUFFLE = 2
    DROPOUT = 3
    PARTICIPATION = 4
    PARTITION = 5
    DATA = 6
    CLUSTERING = 7
    SIGNATURE = 8
    GROUPING = 9
    ATTACK = 10
    NOISE = 11
    LEAVING = 12
    MERGING = 13
    PROXY = 14
    MENDING = 15
    PUBLIC = 16
    COMPRESSION = 17
    DOWN_COMPRESSION = 18
    TOPOLOGY = 19
    DEVICES = 20
    ONLINE = 21
    SCHEDULE = 22
    CHOOSING = 23
    PERTURBATION = 24
    DISTILLATION = 25


def key(seed: int, purpose: Purpose, *coordinates: int) -> int:
    """Return the 64-bit key of one stream.

    Parameters
    ----------
    seed : int
        Run seed (or split seed, for `Purpose.PARTITION`).
    purpose : Purpose
        What the numbers are for.
    *coordinates : int
        Client, round, step, layer: whatever tells this stream from others.
    """
    return int.from_bytes(_hash(seed, purpose, *coordinates).digest(), "little")


def keys(count: int, seed: int, purpose: Purpose, *coordinates: int) -> list[int]:
    """Return the keys of `count` streams that differ in one more coordinate, which counts from 0."""
    common, found = _hash(seed, purpose, *coordinates), []
    for number in range(count):
        own = common.copy()
        own.update(b",%d" % number)
        found.append(int.from_bytes(own.digest(), "little"))
    return found


def _hash(*coordinates: int) -> hashlib.blake2b:
    return hashlib.blake2b(",".join(map(str, map(int, coordinates))).encode(), digest_size=8)


def words(stream: int, count: int) -> npt.NDArray[np.uint64]:
    """Return elements 0..count-1 of a stream as uniform 64-bit words."""
    state = np.arange(1, count + 1, dtype=np.uint64)
    state *= _GOLDEN
    state += np.uint64(stream)
    scratch = state >> np.uint64(30)
    state ^= scratch
    state *= _MIX_1
    np.right_shift(state, np.uint64(27), out=scratch)
    state ^= scratch
    state *= _MIX_2
    np.right_shift(state, np.uint64(31), out=scratch)
    state ^= scratch
    return state


def mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return SplitMix64's output at each value: a good 64-bit hash of it."""
    state = values + _GOLDEN
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    hashed: npt.NDArray[np.uint64] = state ^ (state >> np.uint64(31))
    return hashed


def permutation(stream: int, count: int) -> npt.NDArray[np.int64]:
    """Return a permutation of 0..count-1: the stable order of the stream's words."""
    return np.argsort(words(stream, count), kind="stable")


def generator(stream: int) -> np.random.Generator:
    """Return a NumPy generator (Philox, keyed by the stream) for library-style draws."""
    return np.random.Generator(np.random.Philox(key=stream))


def keep_bits(stream: int, count: int, drop: float) -> npt.NDArray[np.uint8]:
    """Return a 0/1 mask of `count` elements, each 1 with probability ``1 - drop``.

    With ``drop`` a multiple of 1/2 or 1/256 an element takes 1 or 8 bits of the
    stream and the probability is exact; otherwise it takes 32 bits and is exact
    to 2**-32. Element ``i`` takes the ``i``-th such group, little-endian first.
    """
    if drop == 0.5:
        raw = words(stream, -(-count // 64)).astype("<u8", copy=False).view(np.uint8)
        return np.unpackbits(raw, count=count, bitorder="little")
    bits = 8 if (drop * 256).is_integer() else 32
    raw = words(stream, -(-count * bits // 64)).astype("<u8", copy=False)
    cells = raw.view(f"<u{bits // 8}")[:count]
    threshold = round(drop * 2**bits)
    kept: npt.NDArray[np.uint8] = (cells >= threshold).astype(np.uint8)
    return kept
