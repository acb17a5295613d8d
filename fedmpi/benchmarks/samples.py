"""Repeated measurements, kept raw, and the report that a benchmark makes of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from fedmpi.clock import Stopwatch

T = TypeVar("T")
_RESAMPLES = 2000
_UNITS = {"bytes": "B", "calls": "1", "share": "1"}
"""Of figures by the last word of their names; of others it is the second."""


@dataclass(frozen=True)
class Samples:
    """One figure in all its repetitions, in the order in which they were taken."""

    unit: str
    values: tuple[float, ...]

    @classmethod
    def of(cls, unit: str, values: Iterable[float]) -> Samples:
        """Return samples of plain floats."""
        return cls(unit, tuple(float(value) for value in values))

    @property
    def median(self) -> float:
        """Median of the repetitions."""
        return statistics.median(self.values)

    @property
    def minimum(self) -> float:
        """Smallest repetition."""
        return min(self.values)

    @property
    def maximum(self) -> float:
        """Largest repetition."""
        return max(self.values)

    def record(self) -> dict[str, Any]:
        """Return unit, raw samples, median, minimum and maximum as JSON values."""
        return {
            "unit": self.unit,
            "samples": list(self.values),
            "median": self.median,
            "minimum": self.minimum,
            "maximum": self.maximum,
        }


@dataclass(frozen=True)
class Measurement:
    """One thing that was measured: what tells it from the others, and its figures by name."""

    labels: Mapping[str, str | int]
    figures: Mapping[str, Samples]

    def record(self) -> dict[str, Any]:
        """Return labels and figures as JSON values."""
        return {**self.labels, "figures": {name: each.record() for name, each in self.figures.items()}}


@dataclass(frozen=True)
class Report:
    """What a benchmark found.

    Attributes
    ----------
    benchmark : str
        Its name.
    settings : mapping
        JSON values: what was asked for, repetitions and warm-up included.
    measurements : sequence of Measurement
        All repetitions.
    results : mapping
        JSON values that were computed from all measurements together.
    statements : sequence of str
        The same in words.
    """

    benchmark: str
    settings: Mapping[str, Any]
    measurements: Sequence[Measurement]
    results: Mapping[str, Any]
    statements: Sequence[str]

    def record(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {**vars(self), "measurements": [each.record() for each in self.measurements]}


@dataclass(frozen=True)
class Turns:
    """Turns that are measured, and turns before them that do not count."""

    repetitions: int
    warmup: int

    def of(self, actions: Mapping[str, Callable[[int], T]]) -> dict[str, tuple[T, ...]]:
        """Do each action once in every turn, so that what is compared was measured by turns.

        Parameters
        ----------
        actions : mapping
            Of the turn's number, from 0.

        Returns
        -------
        dict
            What each action returned in the turns that count.
        """
        turns = [[each(turn) for each in actions.values()] for turn in range(self.warmup + self.repetitions)]
        return dict(zip(actions, zip(*turns[self.warmup :], strict=True), strict=True))

    def seconds(self, action: Callable[[], object]) -> Samples:
        """Return the wall-clock seconds of an action."""

        def timed(turn: int) -> float:
            watch = Stopwatch()
            action()
            return watch.wall

        return Samples.of("s", self.of({"seconds": timed})["seconds"])


def figures_of(rows: Sequence[Mapping[str, float]]) -> dict[str, Samples]:
    """Return the figures that each repetition has, by name: bytes and shares are called so."""
    units = {name: _UNITS.get(name.rpartition("_")[2], "s") for name in rows[0]}
    return {name: Samples.of(unit, (row[name] for row in rows)) for name, unit in units.items()}


def listed(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each beginning, with all that goes on from it."""
    found: dict[str, list[str]] = {}
    for beginning, text in pairs:
        found.setdefault(beginning, []).append(text)
    return [f"{beginning} {', '.join(texts)}" for beginning, texts in found.items()]


def ratios(above: Samples, below: Samples) -> Samples:
    """Return the ratio of each pair of repetitions."""
    return Samples.of("1", (a / b for a, b in zip(above.values, below.values, strict=True)))


def rates(unit: str, amounts: Iterable[float], seconds: Samples) -> Samples:
    """Return amount per second of each repetition."""
    return Samples.of(unit, (a / s for a, s in zip(amounts, seconds.values, strict=True)))


def median_with_interval(samples: Samples) -> dict[str, float]:
    """Return the median and its 95 % percentile-bootstrap interval, the same for the same samples."""
    values = np.array(samples.values)
    drawn = np.random.default_rng(0).choice(values, (_RESAMPLES, len(values)))
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    return {"median": samples.median, "low": float(low), "high": float(high)}


def against_peer(
    labels: Mapping[str, str | int], peer: Mapping[str, Samples], own: Mapping[str, Samples]
) -> tuple[list[Measurement], dict[str, dict[str, float]]]:
    """Return the figures of both programs and their ratios peer / fedmpi by pairs; medians with intervals."""
    pairs = {name.replace("seconds", "ratio"): ratios(peer[name], own[name]) for name in peer}
    programs = {"peer": peer, "fedmpi": own, "peer / fedmpi": pairs}
    found = [Measurement({**labels, "program": program}, figures) for program, figures in programs.items()]
    return found, {name: median_with_interval(each) for name, each in pairs.items()}
