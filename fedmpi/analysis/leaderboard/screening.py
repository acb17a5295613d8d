"""Which federations tell methods apart: reference methods alone, and a rule that is stated before results.

A federation is kept where

- self-train or FedAvg is `LEAST` points or more above a constant prediction for the same clients (centralised
  training has one client, so its constant is another one);
- training alone and together (FedAvg or centralised) differ by as much;
- a difference of `FOUND` points between two methods is significant with the winners' seeds at the first step
  of Holm's correction for `METHODS` methods, with the standard deviation over seeds of the difference between
  FedAvg and self-train, paired by seed (centralised training is not ranked);
- the test parts have `EXAMPLES` examples or more;
- a run of FedAvg takes at most `SECONDS` CPU seconds, so that all methods can be tuned there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated

import numpy as np
from pydantic import StringConstraints

from fedmpi.analysis import scores
from fedmpi.analysis.cells import grouped
from fedmpi.analysis.leaderboard.from_runs import rows_of
from fedmpi.analysis.leaderboard.rows import (
    ALONE,
    ENDED,
    REFERENCE,
    TUNING,
    Amount,
    Digest,
    Label,
    Number,
    Row,
    Whole,
)
from fedmpi.analysis.leaderboard.track import SEEDS, Track
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import least_significant
from fedmpi.metrics.metric import METRICS
from fedmpi.store.reader import Run

CLIENTS = (ALONE, REFERENCE)
TOGETHER = (REFERENCE, "centralised")
REFERENCES = (ALONE, *TOGETHER)
"""Methods that a screening runs."""

LEAST, FOUND, METHODS, EXAMPLES, SECONDS = 5.0, 2.0, 30, 200, 20.0
"""Of the rule; points are hundredths of a metric between 0 and 1."""


@dataclass(frozen=True)
class Trial:
    """One run of a screening.

    Attributes
    ----------
    data, method, seed, status
        As of a `Row`.
    metric : str
        Name of the headline.
    val, test, constant : float
        The headline in the round of the best validation score, mean over clients; what a constant prediction
        scores on the test examples.
    examples : int
        Test examples of all clients.
    cpu_seconds : float
        Of all ranks and rounds.
    commit, numerics_version, config_digest, results_digest
        Where it comes from.
    """

    data: Label
    method: Annotated[str, StringConstraints(pattern=f"^({'|'.join(REFERENCES)})$")]
    seed: Whole
    status: Annotated[str, StringConstraints(pattern=f"^({'|'.join(ENDED)})$")]
    metric: Label
    val: Number
    test: Number
    constant: Number
    examples: Whole
    cpu_seconds: Amount
    commit: str
    numerics_version: Whole
    config_digest: Digest
    results_digest: Digest


@dataclass(frozen=True)
class Screened:
    """What a screening says of a federation; scores in points.

    Attributes
    ----------
    data : str
    scores : dict
        Means over seeds of each method that has run there, and of a constant prediction for the clients of
        self-train and FedAvg ("constant").
    gain : float
        The larger mean lead of self-train and FedAvg over it; minus infinity where neither has a score.
    detectable : float
        Least difference that is significant; NaN without two seeds.
    examples : int
        Test examples, the least of a seed.
    seconds : float
        CPU seconds of FedAvg's run, the least of a seed: what else runs on the machine only adds.
    seeds : int
    """

    data: str
    scores: Mapping[str, float]
    gain: float
    detectable: float
    examples: int
    seconds: float
    seeds: int

    @property
    def gap(self) -> float:
        """The largest difference between training together and alone; NaN where one has no score."""
        alone = self.scores.get(ALONE, math.nan)
        apart = [abs(self.scores[each] - alone) for each in TOGETHER if each in self.scores]
        return max(apart, default=math.nan)

    @property
    def lacks(self) -> tuple[str, ...]:
        """What it fails of the rule; nothing where it is kept."""
        fails = {
            "nothing learned": not self.gain >= LEAST,
            "alone as together": self.gap < LEAST,
            "too noisy": self.detectable > FOUND,
            "too few runs": math.isnan(self.gap + self.detectable),
            "few test examples": self.examples < EXAMPLES,
            "costly": self.seconds > SECONDS,
        }
        return tuple(name for name, failed in fails.items() if failed)


def refuse_others(found: Track) -> None:
    """Raise BadInput if a suite has a method that is no reference."""
    if strange := sorted(set(found.methods) - set(REFERENCES)):
        raise BadInput(f"{found.suite.path}: a screening has {', '.join(REFERENCES)}, not {strange[0]}")


def trials(found: Track, runs: Iterable[Run]) -> list[Trial]:
    """Return the trials of the runs that are complete or have diverged, in their order.

    Raises
    ------
    BadInput
        A run is of another suite.
    """
    ended = [run for run in runs if run.status in ENDED]
    return [_trial(*pair) for pair in zip(rows_of(found, ended, TUNING), ended, strict=True)]


def _trial(row: Row, run: Run) -> Trial:
    own = {each.name: getattr(row, each.name) for each in fields(Trial) if hasattr(row, each.name)}
    examples = int(run.partition["test_ptr"][-1])
    return Trial(**own, constant=scores.constant(run, run.headline), examples=examples)


def screened(listed: Sequence[Trial]) -> list[Screened]:
    """Return what the trials say of each federation, in their order.

    Raises
    ------
    BadInput
        A metric that does not lie between 0 and 1, so that it has no points.
    """
    for name in {trial.metric for trial in listed}:
        if name not in METRICS or not METRICS[name].bounded or not METRICS[name].higher:
            raise BadInput(f"rows of the metric {name}: a screening needs one from 0 to 1, higher is better")
    return [_screened(data, members) for data, members in grouped(listed, lambda each: each.data).items()]


def _screened(data: str, members: Sequence[Trial]) -> Screened:
    tests: dict[str, dict[int, float]] = {}
    for each in members:
        if not math.isnan(each.test):
            tests.setdefault(each.method, {})[each.seed] = 100 * each.test
    means = {method: float(np.mean(list(values.values()))) for method, values in tests.items()}
    of_clients = [each for each in members if each.method in CLIENTS]
    constants = [100 * each.constant for each in of_clients]
    means["constant"] = float(np.mean(constants)) if constants else math.nan
    spent = [each.cpu_seconds for each in members if each.method == REFERENCE]
    return Screened(
        data,
        means,
        max(_lead(of_clients, method) for method in CLIENTS),
        detectable(tests),
        min(each.examples for each in members),
        min(spent, default=math.nan),
        len({each.seed for each in members}),
    )


def _lead(members: Sequence[Trial], method: str) -> float:
    """Return a method's mean lead over the constant of the same clients, in points; -inf without a score."""
    leads = [100 * (each.test - each.constant) for each in members if each.method == method]
    found = [lead for lead in leads if not math.isnan(lead)]
    return float(np.mean(found)) if found else -math.inf


def detectable(tests: Mapping[str, Mapping[int, float]]) -> float:
    """Return the least mean difference that is significant with the winners' seeds.

    Parameters
    ----------
    tests : mapping
        Of each method by seed, in points.

    Returns
    -------
    float
        t s / sqrt(n), with n winners' seeds, t the quantile of Student's distribution of n - 1 degrees for
        the level of Holm's first step, two-sided, and s the deviation of FedAvg less self-train.
    """
    together, alone = tests.get(REFERENCE, {}), tests.get(ALONE, {})
    paired = [alone[seed] - together[seed] for seed in alone if seed in together]
    return least_significant(paired, len(SEEDS), METHODS)
