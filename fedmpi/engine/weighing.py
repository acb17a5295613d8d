"""Weights of a round from the clients' reports, made ready for exact sums; on rank 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fedmpi.comm import reductions
from fedmpi.engine.capability_hooks import WeightsFromReports
from fedmpi.engine.exchange import RoundPlan
from fedmpi.engine.messages import Gathered

Ints = npt.NDArray[np.int64]


def weighted(
    plan: RoundPlan,
    hooks: WeightsFromReports,
    round: int,
    lr: float,
    gathered: Gathered,
    participants: Ints,
    samples: Ints,
) -> RoundPlan:
    """Return the plan with weights, their divisors, and exponents that bound the weighted deltas.

    Parameters
    ----------
    plan : RoundPlan
        No weights are computed if it names a client that is not finite.
    hooks : WeightsFromReports
    round : int
    lr : float
        Length of the clients' steps.
    gathered : Gathered
        The training table; its exponents are those of the deltas alone.
    participants : int64 [k]
    samples : int64 [clients]
        Training graphs.
    """
    weights, divisor = np.zeros(len(samples)), np.ones(len(samples))
    exponent = np.full(len(samples), reductions.ZERO_EXPONENT, np.int64)
    for group in np.unique(plan.group[participants]) if plan.failed_client < 0 else ():
        members = participants[plan.group[participants] == group]
        reports = {name: gathered[name][members] for name in hooks.columns}
        reports["samples"] = samples[members].astype(np.float64)
        relative = hooks.round_weights(round, lr, reports)
        weights[members], divisor[group] = relative.weights, relative.divisor
        deltas = gathered["exponent"][members].astype(np.int64)
        moves = (deltas != reductions.ZERO_EXPONENT) & (relative.weights > 0)
        bounds = (deltas + np.frexp(relative.weights)[1])[moves]
        exponent[group] = bounds.max(initial=reductions.ZERO_EXPONENT)
    return replace(plan, exponent=exponent, weights=weights, divisor=divisor)
