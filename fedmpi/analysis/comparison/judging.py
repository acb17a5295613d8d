"""How much worse than the reference the headline of runs may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fedmpi.errors import BadInput
from fedmpi.metrics.metric import Metric

Unit = Literal["points", "relative", "absolute"]

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Allowance:
    """How much worse than the reference is still accepted.

    Attributes
    ----------
    amount : float
        Share of 1 for points, share of the reference's value if relative, else in the score's own unit.
    unit : str
    given : str
        What the user wrote, for messages; empty for a default.
    """

    amount: float
    unit: Unit
    given: str = ""

    def check(self, judged: Metric) -> None:
        """Raise BadInput where points are allowed of a score that has none."""
        if self.unit == "points" and not judged.bounded:
            advice = "give a percentage of the reference's, such as 1%, or a number in the labels' unit"
            raise BadInput(f"{self.given}: {judged.title} has no points; {advice}")

    def of(self, reference: float) -> float:
        """Return the largest loss beside a reference's value."""
        return self.amount * (abs(reference) if self.unit == "relative" else 1.0) + _ROUNDING

    def text(self, judged: Metric) -> str:
        """Return it as it stands behind a difference."""
        if self.unit == "relative":
            return f"{100 * self.amount:g} %"
        return f"{judged.scale * self.amount:g}"


def too_bad(judged: Metric, allowed: Allowance | None, first: float, second: float) -> str:
    """Return in words why the second value is too bad beside the first; empty if it is not.

    Parameters
    ----------
    allowed : Allowance or None
        None: a point; of a score in the labels' unit 1 % of the reference's.
    first, second : float
        A NaN is never good enough.
    """
    allowed = allowed or Allowance(0.01, "points" if judged.bounded else "relative")
    most, loss = allowed.of(first), judged.sign * (first - second)
    if math.isnan(loss):
        return f"no {judged.title} of both sides, so none to judge by"
    if loss <= most:
        return ""
    way = "below" if judged.higher else "above"
    size = f"{judged.shown(loss)}{judged.points}"
    return f"{judged.title} {size} {way} the reference ({allowed.text(judged)} allowed)"
