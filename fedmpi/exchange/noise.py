"""Gaussian and discrete Gaussian noise from counter-based streams: the same on any ranks."""

from __future__ import annotations

from itertools import count

import numpy as np
import numpy.typing as npt

from fedmpi.seeds import Purpose, key, words

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Uniforms:
    """Uniform numbers between 0 and 1, both excluded, of one stream.

    Parameters
    ----------
    seed : int
        Of the run.
    purpose : Purpose
    *coordinates : int
        Round, group, client: whatever tells this stream from others.
    """

    def __init__(self, seed: int, purpose: Purpose, *coordinates: int) -> None:
        self._seed, self._purpose, self._coordinates = seed, purpose, coordinates
        self._blocks = count()

    def draw(self, size: int) -> Floats:
        """Return the next `size` numbers, of 53 bits each."""
        drawn = words(key(self._seed, self._purpose, *self._coordinates, next(self._blocks)), size)
        uniform: Floats = ((drawn >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        return uniform


def gaussian(source: Uniforms, size: int) -> Floats:
    """Return `size` standard normal numbers, by the inverse of the distribution function."""
    from scipy.special import ndtri  # takes a tenth of a second to import

    normal: Floats = ndtri(source.draw(size))
    return normal


def discrete_gaussian(source: Uniforms, sigma: float, size: int) -> Ints:
    """Return `size` integers x with probability in proportion to exp(-x^2 / (2 sigma^2)).

    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020,
    Algorithm 3: a discrete Laplace number of scale t, kept with probability
    exp(-(abs(x) - sigma^2 / t)^2 / (2 sigma^2)). Probabilities are those of float64, not exact.
    """
    scale = np.floor(sigma) + 1
    found, missing = np.zeros(size, np.int64), np.arange(size)
    while len(missing):
        magnitude = np.floor(-scale * np.log(source.draw(len(missing))))
        negative = source.draw(len(missing)) < 0.5
        odds = np.exp(-((magnitude - sigma**2 / scale) ** 2) / (2 * sigma**2))
        kept = (source.draw(len(missing)) < odds) & ~(negative & (magnitude == 0))
        found[missing[kept]] = np.where(negative, -magnitude, magnitude)[kept].astype(np.int64)
        missing = missing[~kept]
    return found
