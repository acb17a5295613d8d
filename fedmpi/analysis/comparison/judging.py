"""By which figure runs are judged, and how much worse than the reference they may be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fedmpi.errors import BadInput
from fedmpi.metrics.headline import NAMES

Unit = Literal["points", "relative", "absolute"]

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Yardstick:
    """The figure that says how good a run's models are, in the last evaluated round.

    Attributes
    ----------
    figure : str
        Its name among a run's figures.
    name : str
        As it is called in sentences.
    higher : bool
        Whether more is better.
    percent : bool
        Whether it is shown in percent, its differences in points.
    bounded : bool
        Whether it lies between 0 and 1, so that a point is 0.01; else it has the labels' unit.
    """

    figure: str
    name: str
    higher: bool = True
    percent: bool = True
    bounded: bool = True

    def loss(self, first: float, second: float) -> float:
        """Return by how much the second value is worse than the first; below 0 if it is better."""
        return first - second if self.higher else second - first

    def shown(self, value: float, signed: bool = False) -> str:
        """Return a value or a difference for people, percent without its sign."""
        sign = "+" if signed else ""
        return f"{100 * value:{sign}.2f}" if self.percent else f"{value:{sign}.4f}"

    @property
    def points(self) -> str:
        """What follows a difference."""
        return " points" if self.percent else ""


ACCURACY = Yardstick("test_accuracy", "accuracy")
_OTHERS = (
    *(
        Yardstick(f"test_{field}", name, higher, percent=False, bounded=field != "rmse")
        for field, (name, higher) in NAMES.items()
    ),
    Yardstick("clustering_accuracy", "clustering accuracy"),
)


def yardstick(figures: Mapping[str, float]) -> Yardstick:
    """Return by what a run of these figures is judged: accuracy unless it has another headline."""
    return next((each for each in _OTHERS if each.figure in figures), ACCURACY)


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

    def check(self, judged: Yardstick) -> None:
        """Raise BadInput where points are allowed of a score that has none."""
        if self.unit == "points" and not judged.bounded:
            raise BadInput(
                f"{self.given}: {judged.name} has no points; give a percentage of the reference's, such as "
                "1%, or a number in the labels' unit"
            )

    def of(self, reference: float) -> float:
        """Return the largest loss beside a reference's value."""
        return self.amount * (abs(reference) if self.unit == "relative" else 1.0) + _ROUNDING

    def text(self, judged: Yardstick) -> str:
        """Return it as it stands behind a difference."""
        if self.unit == "relative":
            return f"{100 * self.amount:g} %"
        return f"{100 * self.amount if judged.percent else self.amount:g}"


def default_allowance(judged: Yardstick) -> Allowance:
    """Return a point; of a score in the labels' unit 1 % of the reference's."""
    return Allowance(0.01, "points" if judged.bounded else "relative")


def too_bad(judged: Yardstick, allowed: Allowance | None, first: float, second: float) -> str:
    """Return in words why the second value is too bad beside the first; empty if it is not.

    Parameters
    ----------
    allowed : Allowance or None
        None: `default_allowance`.
    first, second : float
        A NaN is never good enough.
    """
    allowed = allowed or default_allowance(judged)
    most, loss = allowed.of(first), judged.loss(first, second)
    if math.isnan(loss):
        return f"no {judged.name} of both sides, so none to judge by"
    if loss <= most:
        return ""
    way = "below" if judged.higher else "above"
    size = f"{judged.shown(loss)}{judged.points}"
    return f"{judged.name} {size} {way} the reference ({allowed.text(judged)} allowed)"
