"""Epsilon of the rounds so far, by dp-accounting's Renyi accountant."""

from __future__ import annotations

import numpy as np


class Accountant:
    """Privacy loss of rounds of a Gaussian mechanism on a sample of fixed size, drawn without replacement.

    Neighbouring federations have as many clients, one of whom is replaced by another: n is public, and a
    sum of clipped updates changes by up to 2 C, so that the noise over that sensitivity is half the noise
    multiplier. Wang, Balle and Kasiviswanathan, "Subsampled Renyi differential privacy and analytical
    moments accountant", AISTATS 2019, Theorem 27; where that bound is above the loss without sampling, the
    latter, which a sample cannot exceed (Renyi divergence is quasi-convex).

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over what one client adds at most.
    delta : float
    num_clients, sampled : int
        Of whom so many take part in each round.
    """

    def __init__(self, noise_multiplier: float, delta: float, num_clients: int, sampled: int) -> None:
        import dp_accounting
        from dp_accounting import rdp

        noise = dp_accounting.GaussianDpEvent(noise_multiplier / 2)
        sample = dp_accounting.SampledWithoutReplacementDpEvent(num_clients, sampled, noise)
        losses = []
        for event in (noise, sample):
            accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
            losses.append(accountant.compose(event).rdp)
        self._orders, self._one, self._delta = accountant.orders, np.minimum(*losses), delta
        self._convert = rdp.compute_epsilon

    def epsilon(self, rounds: int) -> float:
        """Return epsilon after so many rounds."""
        return float(self._convert(self._orders, rounds * self._one, self._delta)[0])
