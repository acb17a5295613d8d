"""A track's board: what each method scores on each federation, its ranks, and its leads over references."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.leaderboard.rows import ALONE, FINAL, REFERENCE, TUNING, Constant, Row, metric_of
from fedmpi.analysis.leaderboard.track import SEEDS, Pair, Track
from fedmpi.judging.equivalence import Comparison, compare
from fedmpi.judging.estimates import Estimate, corrected, estimate, least_significant
from fedmpi.judging.ranking import Ranking, ranking, ranks
from fedmpi.metrics.metric import Metric

CONSTANT = "constant"
"""In the place of a method: what a constant prediction scores."""

OPEN, DIVERGED, NONE = "open", "diverged", "none"
"""States of a pair without a score: runs are missing; a run has diverged; it cannot run there."""

_MOST = 1
"""So many methods may be better than a constant prediction where methods are said not to learn more."""

_MANY = 10
"""Runs of fewer rounds have no last tenth."""


@dataclass(frozen=True)
class Entry:
    """A method on a federation.

    Attributes
    ----------
    state : str
        `OPEN`, `DIVERGED`, `NONE`, or "" where it has a score.
    rows : tuple of Row
        Of its complete runs, by seed.
    tuning : tuple of Row
        Of its candidates.
    """

    state: str
    rows: tuple[Row, ...] = ()
    tuning: tuple[Row, ...] = ()

    @property
    def score(self) -> Estimate:
        """Mean over seeds of the test score in the round of best validation, in the metric's own scale."""
        return estimate([row.test for row in self.rows])


@dataclass(frozen=True)
class Board:
    """A track, or some of its federations.

    Attributes
    ----------
    track : Track
    metric : Metric
    federations, methods : tuple of str
        Labels, in the suite's order; the methods with those that are not ranked.
    entries : dict
        Of each federation and method.
    constants : dict
        What a constant prediction scores on each federation, by seed.
    """

    track: Track
    metric: Metric
    federations: tuple[str, ...]
    methods: tuple[str, ...]
    entries: dict[Pair, Entry]
    constants: dict[str, dict[int, float]]

    @property
    def begun(self) -> bool:
        """Whether there is a score."""
        return any(entry.rows for entry in self.entries.values())

    @cached_property
    def finished(self) -> list[str]:
        """Federations on which every ranked method has a score or cannot have one."""
        pairs = product(self.federations, self._competing)
        unfinished = {data for data, method in pairs if self.entries[data, method].state == OPEN}
        return [data for data in self.federations if data not in unfinished]

    def part(self, federations: Iterable[str]) -> Board:
        """Return the board of some federations."""
        return replace(self, federations=tuple(federations))

    @cached_property
    def ranks(self) -> dict[str, list[float]]:
        """Of each ranked method by finished federation; 1 is the best.

        Scores that are printed alike share their ranks; methods without a score share the last ones.
        """
        table = [ranks([self._printed(data, method) for method in self._competing]) for data in self.finished]
        return {method: [float(row[place]) for row in table] for place, method in enumerate(self._competing)}

    def _printed(self, data: str, method: str) -> float:
        entry = self.entries[data, method]
        return -math.inf if entry.state else self.metric.sign * float(self.metric.shown(entry.score.mean))

    @cached_property
    def ranking(self) -> Ranking | None:
        """What the ranks say, of the methods in their order; None with fewer than two federations."""
        table = np.array(list(self.ranks.values())).T
        return ranking(table) if len(self.finished) > 1 and len(self._competing) > 2 else None

    @property
    def _competing(self) -> list[str]:
        return [method for method in self.methods if method not in self.track.unranked]

    @cached_property
    def competitors(self) -> list[str]:
        """Methods that are ranked, the best first; in the suite's order while nothing is ranked."""
        return sorted(self._competing, key=self.average) if self.ranking else self._competing

    @property
    def behind(self) -> list[str]:
        """Methods that are told apart from the best, which is the first; none while nothing is ranked."""
        if self.ranking is None:
            return []
        best, difference = self.average(self.competitors[0]), self.ranking.critical_difference
        return [method for method in self.competitors if self.average(method) - best >= difference]

    @property
    def open(self) -> dict[str, int]:
        """How many methods are open on each federation that is not finished."""
        pairs = [pair for pair, entry in self.entries.items() if entry.state == OPEN]
        return dict(Counter(data for data, _ in pairs if data in self.federations))

    def entry(self, data: str, method: str) -> Entry:
        """Return how a method stands on a federation; one that is not there cannot run."""
        return self.entries.get((data, method), Entry(NONE))

    def average(self, method: str) -> float:
        """Return a method's average rank; NaN while nothing is ranked."""
        return float(np.mean(self.ranks.get(method, math.nan))) if self.ranking else math.nan

    def by_seed(self, data: str, method: str) -> Mapping[int, float]:
        """Return test scores by seed, of a method or `CONSTANT`; nothing where it has no score.

        A run that has diverged scores what a constant prediction does, where that is known.
        """
        known = self.constants.get(data, {})
        if method == CONSTANT:
            return known if set(SEEDS) <= known.keys() else {}
        entry = self.entry(data, method)
        own = {row.seed: row.test for row in entry.rows}
        return {"": own, DIVERGED: {**known, **own} if known else {}}.get(entry.state, {})

    def _differences(self, data: str, method: str, reference: str) -> list[float]:
        own, base = self.by_seed(data, method), self.by_seed(data, reference)
        return [score - base[seed] for seed, score in own.items() if seed in base]

    def verdicts(self, data: str, reference: str = REFERENCE) -> dict[str, str]:
        """Return whether each ranked method is better or worse than a reference on a finished federation.

        Differences are paired by seed, and so by partition; p-values are adjusted for all methods (Holm).
        """
        return self._verdicts.get((data, reference), {})

    @cached_property
    def _verdicts(self) -> dict[tuple[str, str], dict[str, str]]:
        pairs = product(self.finished, (REFERENCE, ALONE, CONSTANT))
        return {(data, reference): self._judged(data, reference) for data, reference in pairs}

    def _judged(self, data: str, reference: str) -> dict[str, str]:
        differences = {
            method: estimate(found)
            for method in self._competing
            if method != reference and not self.entries[data, method].state
            if (found := self._differences(data, method, reference))
        }
        p_values = corrected(list(differences.values()))
        return {
            method: each.verdict(self.metric.higher, p_value)
            for (method, each), p_value in zip(differences.items(), p_values, strict=True)
        }

    def least_significant(self, data: str) -> float:
        """Return the least lead over FedAvg that is significant, in points: median over the methods."""
        if data not in self.finished or not self.metric.bounded:
            return math.nan
        others = [
            self._differences(data, method, REFERENCE) for method in self._competing if method != REFERENCE
        ]
        paired = [each for each in others if each]
        found = [100 * least_significant(each, len(SEEDS), len(paired)) for each in paired]
        return float(np.median(found)) if found else math.nan

    def tally(self, method: str, reference: str) -> tuple[int, int]:
        """Return on how many federations a method is better, and on how many worse, than a reference."""
        verdicts = [self.verdicts(data, reference).get(method) for data in self.finished]
        return verdicts.count("better"), verdicts.count("worse")

    @property
    def not_learned(self) -> list[str]:
        """Finished federations on which at most one method is better than a constant prediction."""
        against = {data: list(self.verdicts(data, CONSTANT).values()) for data in self.finished}
        return [data for data, each in against.items() if each and each.count("better") <= _MOST]

    def late(self, data: str) -> float:
        """Return the share of the winners' runs whose best round is in the last tenth; NaN if unfinished."""
        late: list[bool] = []
        for method in self.competitors if data in self.finished else ():
            cases = self.track.candidates.get((data, method), ())
            rounds = int(cases[0].settings.get("rounds", 0)) if cases else 0
            late += [
                row.best_round > 0.9 * rounds for row in self.entry(data, method).rows if rounds >= _MANY
            ]
        return float(np.mean(late)) if late else math.nan

    def leads(self, method: str) -> list[float]:
        """Return the mean leads over FedAvg on finished federations, in points; without those of no score."""
        if not self.metric.bounded:
            return []
        found = [self._differences(data, method, REFERENCE) for data in self.finished]
        return [100 * self.metric.sign * float(np.mean(each)) for each in found if each]

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Ranked methods against FedAvg over the finished federations, the largest mean lead first."""
        leads = {method: self.leads(method) for method in self._competing if method != REFERENCE}
        found = {method: compare(each) for method, each in leads.items() if each}
        return dict(sorted(found.items(), key=lambda item: -item[1].mean))


def board(found: Track, rows: Sequence[Row], constants: Iterable[Constant] = ()) -> Board:
    """Return the board of a track.

    Parameters
    ----------
    found : Track
    rows : sequence of Row
        Of this track; methods that are not in its suite come last.
    constants : iterable of Constant, optional
        Of this track.

    Raises
    ------
    BadInput
        Rows of several metrics, or of one that fedmpi does not have: it says which score is the better.
    """
    methods = tuple(dict.fromkeys([*found.methods, *(row.method for row in rows)]))
    federations = tuple(found.federations)
    by_pair = grouped(rows, lambda row: row.pair)
    pairs = product(federations, methods)
    entries = {pair: _entry(found, pair, by_pair.get(pair, [])) for pair in pairs}
    metric = metric_of(rows)
    known: dict[str, dict[int, float]] = {}
    for each in constants:
        if each.metric == metric.name:
            known.setdefault(each.data, {})[each.seed] = each.constant
    return Board(found, metric, federations, methods, entries, known)


def _entry(found: Track, pair: Pair, rows: Sequence[Row]) -> Entry:
    """Return how a pair stands."""
    final = sorted((row for row in rows if row.stage == FINAL), key=lambda row: row.seed)
    tuning = tuple(row for row in rows if row.stage == TUNING)
    scored = tuple(row for row in final if row.scored)
    candidates = len(found.candidates.get(pair, ()))
    if pair not in found.candidates and pair[1] in found.methods:
        return Entry(NONE, scored, tuning)
    if len(tuning) == candidates > 0 and all(row.status == "diverged" for row in tuning):
        return Entry(DIVERGED, scored, tuning)
    if not {row.seed for row in final} >= set(SEEDS):
        return Entry(OPEN, scored, tuning)
    return Entry("" if len(scored) == len(final) else DIVERGED, scored, tuning)
