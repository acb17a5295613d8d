"""Several tests at a time: p-values corrected for their number."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fedmpi.judging.estimates import Estimate


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm 1979).

    Rejecting those below a level keeps the chance of even one false rejection
    among all of them below that level, however they depend on one another.
    """
    order = np.argsort(p_values, kind="stable")
    adjusted = np.arange(len(order), 0, -1) * np.asarray(p_values)[order]
    found = np.empty(len(order))
    found[order] = np.maximum.accumulate(np.minimum(adjusted, 1.0))
    return list(found.tolist())


def corrected(differences: Sequence[Estimate | None]) -> list[float]:
    """Return p-values of no difference after Holm over those that tell one; NaN of the others."""
    p_values = [math.nan if one is None else one.p_value for one in differences]
    asked = [place for place, p_value in enumerate(p_values) if not math.isnan(p_value)]
    for place, adjusted in zip(asked, holm([p_values[place] for place in asked]), strict=True):
        p_values[place] = adjusted
    return p_values
