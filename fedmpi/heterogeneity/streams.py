"""Random generators of the analyses, one per purpose and graph."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from fedmpi.seeds import Purpose, generator, key


class Draw(IntEnum):
    """What an analysis draws."""

    WALKS = 1
    RANDOM_GRAPHS = 2
    PAIRS = 3
    PARTITIONS = 4


def stream(seed: int, draw: Draw, *coordinates: int) -> np.random.Generator:
    """Return the generator of one draw.

    A draw is named by at least four numbers, a generated dataset's by three at most, so that the
    two never share a stream although both are of `Purpose.DATA`.
    """
    marker = -1
    return generator(key(seed, Purpose.DATA, marker, draw, *coordinates))
