"""Our rows beside the published figures: means, intervals, and whether these overlap."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedmpi.errors import BadInput
from fedmpi.metrics import clients

Float = npt.NDArray[np.float64]
Key = tuple[str, str, int]
"""Dataset, algorithm, rounds."""

_PUBLISHED = (
    "dataset",
    "algorithm",
    "rounds",
    "source",
    "seeds",
    "mean",
    "spread",
    "values",
    "min_gain",
    "ratio",
)


@dataclass(frozen=True)
class Published:
    """One published cell.

    Attributes
    ----------
    seeds : int
        Repetitions behind the mean.
    spread : float or None
        The printed +-: the mean over clients of each client's standard deviation over seeds.
    values : tuple of float
        Average over clients of each seed, where they are known.
    min_gain, ratio : str
        As printed.
    """

    source: str
    seeds: int
    mean: float
    spread: float | None
    values: tuple[float, ...]
    min_gain: str
    ratio: str


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval (Student's t over seeds)."""

    mean: float
    half: float

    def overlaps(self, other: Interval) -> bool:
        """Return whether the two intervals share a point."""
        return abs(self.mean - other.mean) <= self.half + other.half

    def __str__(self) -> str:
        if math.isnan(self.half):
            return f"{self.mean:.4f}"
        return f"{self.mean:.4f} ± {self.half:.4f}"


def interval(mean: float, std: float, count: int) -> Interval:
    """Return the 95 % interval of a mean of `count` values with standard deviation `std` (ddof 1)."""
    if count < 2:
        return Interval(mean, math.nan)
    from scipy.stats import t

    return Interval(mean, float(t.ppf(0.975, count - 1)) * std / math.sqrt(count))


def accuracies(rows: Sequence[Mapping[str, str]], column: str) -> dict[Key, Float]:
    """Return the accuracies [seeds, clients] of each dataset, algorithm and number of rounds.

    Raises
    ------
    BadInput
        A seed lacks clients that another has, or there is a client twice.
    """
    cells: dict[Key, dict[str, list[float]]] = {}
    for row in rows:
        key = (row["dataset"], row["algorithm"], int(row["rounds"]))
        cells.setdefault(key, {}).setdefault(row["seed"], []).append(float(row[column]))
    for (dataset, algorithm, _), seeds in cells.items():
        if len({len(values) for values in seeds.values()}) > 1:
            raise BadInput(f"rows of {algorithm} on {dataset}: not the same number of clients for each seed")
    return {key: np.array(list(seeds.values())) for key, seeds in cells.items()}


def read(path: Path) -> dict[Key, list[Published]]:
    """Read published cells from a CSV file with the columns of `_PUBLISHED`."""
    try:
        with path.open(newline="") as stream:
            reader = csv.DictReader(stream)
            rows = list(reader)
    except OSError as error:
        raise BadInput(f"{path}: cannot read published figures ({error.strerror})") from error
    if tuple(reader.fieldnames or ()) != _PUBLISHED:
        raise BadInput(f"{path}: the columns must be {', '.join(_PUBLISHED)}")
    cells: dict[Key, list[Published]] = {}
    for row in rows:
        cell = Published(
            row["source"],
            int(row["seeds"]),
            float(row["mean"]),
            float(row["spread"]) if row["spread"] else None,
            tuple(float(value) for value in row["values"].split()),
            row["min_gain"],
            row["ratio"],
        )
        cells.setdefault((row["dataset"], row["algorithm"], int(row["rounds"])), []).append(cell)
    return cells


def published_interval(cell: Published, ours: Float) -> Interval:
    """Return the interval of a published mean.

    From its seeds where they are known; else from the printed spread, a mean of
    per-client deviations, scaled as that figure and the deviation of the average
    relate in our own runs of the same cell.
    """
    if len(cell.values) > 1:
        return interval(cell.mean, float(np.std(cell.values, ddof=1)), len(cell.values))
    if cell.spread is None or len(ours) < 2:
        return Interval(cell.mean, math.nan)
    scale = clients.std_of_average(ours) / clients.std_over_seeds(ours)
    return interval(cell.mean, cell.spread * scale, cell.seeds)


def gains(ours: Float, alone: Float) -> tuple[float, int]:
    """Return the minimum gain over self-train and how many clients gain at least 0 (means over seeds)."""
    gain = ours.mean(axis=0) - alone.mean(axis=0)
    return float(gain.min()), int((gain >= -1e-12).sum())


def table(rows: Sequence[Mapping[str, str]], published: Mapping[Key, Sequence[Published]]) -> str:
    """Return a Markdown table: a line per published cell that the rows hold, ours beside theirs."""
    last = accuracies(rows, "test_accuracy")
    best = accuracies(rows, "test_accuracy_best_by_validation")
    maxima = accuracies(rows, "test_accuracy_as_published")
    lines = [
        "| dataset | method | seeds | ours, last round | best by validation | as published | min gain, ratio "
        "| source | published | min gain, ratio | 95 % intervals |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key, ours in last.items():
        for cell in published.get(key, []):
            lines.append(_line(key, ours, (best[key], maxima[key]), _alone(key, last, published), cell))
    return "\n".join(lines) + "\n"


def _alone(
    key: Key, cells: Mapping[Key, Float], published: Mapping[Key, Sequence[Published]]
) -> Float | None:
    """Return self-train at its published number of epochs, which gains are measured against."""
    for other in published:
        if other[:2] == (key[0], "self-train") and other != key and other in cells:
            return cells[other]
    return None


def _own(values: Float) -> Interval:
    """Return the interval of the average over clients of our seeds [seeds, clients]."""
    std = clients.std_of_average(values) if len(values) > 1 else 0.0
    return interval(float(values.mean()), std, len(values))


def _line(key: Key, ours: Float, others: Sequence[Float], alone: Float | None, cell: Published) -> str:
    dataset, algorithm, rounds = key
    best, maximum = (_own(values) for values in others)
    # The published figures of clustered methods are maxima over test accuracies: compare the like.
    own = maximum if algorithm.startswith("gcfl") else _own(ours)
    theirs = published_interval(cell, ours)
    known = not math.isnan(theirs.half) and not math.isnan(own.half)
    verdict = ("overlap" if own.overlaps(theirs) else "**apart**") if known else "one seed"
    gain = "-"
    if alone is not None and algorithm != "self-train":
        least, count = gains(ours, alone)
        gain = f"{least:+.4f}, {count}/{ours.shape[1]}"
    printed = f"{cell.min_gain}, {cell.ratio}" if cell.min_gain else "-"
    method = f"{algorithm}, {rounds} rounds"
    cells = (
        dataset,
        method,
        len(ours),
        _own(ours),
        best,
        maximum,
        gain,
        cell.source,
        theirs,
        printed,
        verdict,
    )
    return "| " + " | ".join(map(str, cells)) + " |"
