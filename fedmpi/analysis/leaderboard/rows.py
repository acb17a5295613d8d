"""The leaderboard's rows: one per run, with what it scored, what it cost and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field, StringConstraints, WrapValidator

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.leaderboard.track import Pair, Settings, Track, tuned_text
from fedmpi.config.suite import CaseSettings
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import ACCURACY, METRICS, Metric

TUNING, FINAL = "tuning", "final"
REFERENCE = "fedavg"
"""Method whose validation score is the target that others are to reach."""

AGAIN = "fedavg-again"
"""The same, tuned with other candidates: what it leads by is what tuning leaves to chance."""
_EXACT = 9
"""Decimals of scores that are compared."""

ALONE = "self-train"
"""Method that shows what training together is worth."""

ENDED = ("complete", "diverged")
"""Statuses of a run that has a row."""

_LARGEST = 1e39
"""Above what float32 holds, in which scores are; sums and squares of it are still numbers."""


def _digits(cell: object) -> object:
    if isinstance(cell, str) and not (cell.isascii() and cell.isdigit() and len(cell) < 19):
        raise ValueError("no whole number")
    return cell


Label = Annotated[str, Field(min_length=1)]
Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Whole = Annotated[int, BeforeValidator(_digits)]
_or_empty = WrapValidator(lambda cell, check: math.nan if cell == "" else check(cell))
Number = Annotated[float, Field(gt=-_LARGEST, lt=_LARGEST), _or_empty]
Amount = Annotated[float, Field(ge=0, lt=_LARGEST), _or_empty]
Count = Annotated[float, Field(ge=0, lt=_LARGEST, multiple_of=1), _or_empty]


@dataclass(frozen=True)
class Row:
    """One run.

    Attributes
    ----------
    track, data, method : str
        Labels: the track, the federation, the method.
    stage : str
        `TUNING` or `FINAL`.
    case, seed, status : str, int, str
    settings : str
        What the tuning varies, ``key=value``.
    metric : str
        Name of the headline.
    best_round : int
        Of all clients together, from 1: that of the best validation score; 0 without one.
    val, test : float
        The headline in that round, mean over clients; NaN for a run that has diverged.
    worst_decile : float
        Mean of the test scores in that round over the worst tenth of the clients, at least one; NaN where
        clients have no scores of their own, and of a single client.
    clients : int
    bytes_per_client : float
        Up and down, mean over participants and rounds.
    model_gflop, cpu_seconds : float
        Of training, all clients and rounds; of all ranks and rounds.
    target : float
        Validation score of FedAvg's run on the federation with this seed, the mean over its candidates;
        NaN where there is none.
    rounds_to_target, cpu_seconds_to_target : float
        Until the validation score is as good; NaN where it never is.
    gflop_to_target, bytes_to_target, virtual_seconds_to_target : float
        Until then: of training, all clients; up and down, mean over clients; of the clients' devices, NaN
        where there is no model of them.
    commit, numerics_version, config_digest, results_digest
        Provenance: two runs that computed the same have the same digest of results.

    A column with a default may be missing in a file: one that was written before there was such a column.
    """

    track: Label
    data: Label
    method: Label
    stage: Annotated[str, StringConstraints(pattern=f"^({TUNING}|{FINAL})$")]
    case: Label
    seed: Whole
    status: Annotated[str, StringConstraints(pattern=f"^({'|'.join(ENDED)})$")]
    settings: str
    metric: Label
    best_round: Whole
    val: Number
    test: Number
    worst_decile: Number = field(default=math.nan, kw_only=True)
    clients: Whole
    bytes_per_client: Amount
    model_gflop: Amount
    cpu_seconds: Amount
    target: Number
    rounds_to_target: Count
    cpu_seconds_to_target: Amount
    gflop_to_target: Amount = field(default=math.nan, kw_only=True)
    bytes_to_target: Amount = field(default=math.nan, kw_only=True)
    virtual_seconds_to_target: Amount = field(default=math.nan, kw_only=True)
    commit: str
    numerics_version: Whole
    config_digest: Digest
    results_digest: Digest

    @property
    def pair(self) -> Pair:
        """Federation and method."""
        return self.data, self.method

    @property
    def scored(self) -> bool:
        """Whether it is complete and has a score."""
        return self.status == "complete" and not math.isnan(self.test)


@dataclass(frozen=True)
class Constant:
    """What a constant prediction scores on a federation with a seed: each client's majority class, say.

    Attributes
    ----------
    track, data, metric : str
    seed : int
        That draws partition and split.
    constant : float
        Mean over clients of the test score, in the metric's own scale.
    """

    track: Label
    data: Label
    seed: Whole
    metric: Label
    constant: Annotated[float, Field(allow_inf_nan=False)]


_COMPARED = (
    *("status", "settings", "metric", "best_round", "val", "test", "worst_decile", "clients"),
    *("bytes_per_client", "model_gflop", "numerics_version", "config_digest", "results_digest"),
)
"""Columns that a second run must have alike: all but times, the commit, and what hangs on other rows. What
one of two rows lacks is not compared: the digest of results has it, too."""


def metric_of(listed: Sequence[Row]) -> Metric:
    """Return the metric of rows, accuracy where there are none.

    Raises
    ------
    BadInput
        They have several, or one that fedmpi does not have: it says which score is the better.
    """
    names = sorted({row.metric for row in listed}) or [ACCURACY.name]
    if len(names) > 1 or names[0] not in METRICS:
        raise BadInput(f"rows of the metric {', '.join(names)}: a track has one, and it is one of fedmpi's")
    return METRICS[names[0]]


def chosen(found: Track, listed: Iterable[Row]) -> dict[Pair, Settings]:
    """Return the settings of the best candidate of each pair by validation, the mean over its seeds.

    Of equal ones the first. One that has not completed on all seeds has lost; a pair that has no other has
    no settings.

    Parameters
    ----------
    found : Track
    listed : iterable of Row
        Of its tuning.
    """
    by_case = {row.case: row for row in listed}
    best: dict[Pair, Settings] = {}
    for pair, cases in found.candidates.items():
        means: dict[str, float] = {}
        members = grouped(cases, partial(_text_of, cases))
        for text, seeds in members.items():
            rows = [row for case in seeds if (row := by_case.get(case.name)) is not None]
            if len(rows) == len(seeds) and not any(math.isnan(row.val) for row in rows):
                means[text] = metric_of(rows).sign * mean_val(rows)
        if means:
            best[pair] = members[max(means, key=means.__getitem__)][0].settings
    return best


def mean_val(listed: Sequence[Row]) -> float:
    """Return the mean validation score of runs; means that differ in rounding alone are the same number."""
    return round(float(np.mean([row.val for row in listed])), _EXACT)


def _text_of(cases: Sequence[CaseSettings], case: CaseSettings) -> str:
    return tuned_text(case.settings, cases)


def merged(earlier: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Return rows, new ones in the place of earlier ones of the same stage and case; the tuning first."""
    found = {(row.stage, row.case): row for row in earlier}
    found |= {(row.stage, row.case): row for row in new}
    return sorted(found.values(), key=lambda row: row.stage != TUNING)


def differences(first: Iterable[Row], second: Iterable[Row]) -> list[str]:
    """Return a line for each case whose second row is not what the first is, times apart."""
    there = {(row.stage, row.case): row for row in second}
    lines = []
    for row in first:
        other = there.get((row.stage, row.case))
        if other is None:
            lines.append(f"{row.stage} {row.case}: not computed")
            continue
        pairs = {name: (str(getattr(row, name)), str(getattr(other, name))) for name in _COMPARED}
        changed = {name: pair for name, pair in pairs.items() if len({*pair}) > 1 and "nan" not in pair}
        if changed:
            listed = (f"{name} {' -> '.join(pair)}" for name, pair in changed.items())
            lines.append(f"{row.stage} {row.case}: {', '.join(listed)}")
    return lines
