"""A track's board: what each method scores on each federation, its ranks, its leads and its costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.leaderboard.rows import FINAL, REFERENCE, TUNING, Constant, Row, metric_of
from fedmpi.analysis.leaderboard.track import SEEDS, Pair, Track
from fedmpi.judging.estimates import Estimate, corrected, estimate
from fedmpi.judging.ranking import Ranking, ranking, ranks
from fedmpi.metrics.metric import Metric

UNRANKED = ("centralised",)
"""Methods that are shown beside the others: what is not federated is a reference."""

TOO_FEW_RATES = "too few rates"
"""What is said of a method in place of "worse" where it had too few rates."""

OPEN, NONE = "open", "none"
"""States of a pair without a score: runs are missing; it cannot run there, or has diverged."""

_MOST = 1
"""So many methods may be better than a constant prediction where methods are said not to learn more."""


@dataclass(frozen=True)
class Entry:
    """A method on a federation.

    Attributes
    ----------
    state : str
        `OPEN`, `NONE`, or "" where it has a score.
    rows : tuple of Row
        Of its complete runs, by seed.
    """

    state: str
    rows: tuple[Row, ...]

    @property
    def score(self) -> Estimate:
        """Mean over seeds of the test score in the round of best validation, in the metric's own scale."""
        return estimate([row.test for row in self.rows])


@dataclass(frozen=True)
class Standing:
    """How many ranked methods are significantly better than a constant prediction, and worse, of how many."""

    better: int
    worse: int
    count: int


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
    def ranked(self) -> list[str]:
        """Federations on which every ranked method has a score or cannot have one."""
        pairs = product(self.federations, self._competing)
        unfinished = {data for data, method in pairs if self.entries[data, method].state == OPEN}
        return [data for data in self.federations if data not in unfinished]

    @cached_property
    def ranks(self) -> dict[str, list[float]]:
        """Of each ranked method by federation, in the order of `ranked`; 1 is the best.

        Scores that are printed alike share their ranks; methods without a score share the last ones.
        """
        table = [ranks([self._printed(data, method) for method in self._competing]) for data in self.ranked]
        return {method: [float(row[place]) for row in table] for place, method in enumerate(self._competing)}

    def _printed(self, data: str, method: str) -> float:
        entry = self.entries[data, method]
        return -math.inf if entry.state else self.metric.sign * float(self.metric.shown(entry.score.mean))

    @cached_property
    def ranking(self) -> Ranking | None:
        """What the ranks say, of the methods in their order; None with fewer than two federations."""
        table = np.array(list(self.ranks.values())).T
        return ranking(table) if len(self.ranked) > 1 and len(self._competing) > 2 else None

    @property
    def _competing(self) -> list[str]:
        return [method for method in self.methods if method not in UNRANKED]

    @property
    def competitors(self) -> list[str]:
        """Methods that are ranked, the best first; in the suite's order while nothing is ranked."""
        return sorted(self._competing, key=self.average) if self.ranking else self._competing

    @property
    def alike(self) -> list[str]:
        """Methods that are not told apart from the best, which is the first; none while nothing is ranked."""
        if self.ranking is None:
            return []
        best, difference = self.average(self.competitors[0]), self.ranking.critical_difference
        return [method for method in self.competitors if self.average(method) - best < difference]

    @property
    def behind(self) -> list[str]:
        """Methods that are told apart from the best, but for those with too few rates."""
        kept = (*self.alike, *self.track.few_rates)
        return [method for method in self.competitors if method not in kept] if self.ranking else []

    @property
    def open(self) -> dict[str, int]:
        """How many methods are open on each federation that is not finished."""
        pairs = [pair for pair, entry in self.entries.items() if entry.state == OPEN]
        return dict(Counter(data for data, _ in pairs if data in self.federations))

    def entry(self, data: str, method: str) -> Entry:
        """Return how a method stands on a federation; one that is not there cannot run."""
        return self.entries.get((data, method), Entry(NONE, ()))

    def mean_rank(self, method: str) -> float:
        """Return a method's mean rank, be it over one federation; NaN where it has none."""
        ranks = self.ranks.get(method)
        return float(np.mean(ranks)) if ranks else math.nan

    def average(self, method: str) -> float:
        """Return a method's average rank; NaN while nothing is ranked."""
        return self.mean_rank(method) if self.ranking else math.nan

    def leads(self, data: str, reference: str = REFERENCE) -> dict[str, str]:
        """Return whether each ranked method is better or worse than another on a federation, or undecided.

        Differences are paired by seed, and so by partition; p-values are adjusted for all methods (Holm).
        """
        if reference in self.track.few_rates:  # better than it would say that it is worse
            return dict.fromkeys((each for each in self.competitors if each != reference), TOO_FEW_RATES)
        other = self.entry(data, reference)
        base = {} if other.state else {row.seed: row.test for row in other.rows}
        return self._verdicts(data, base, but=reference)

    def _verdicts(self, data: str, base: Mapping[int, float], but: str = "") -> dict[str, str]:
        """Return what each ranked method is against scores by seed, but for one method."""
        differences = {
            method: estimate([row.test - base[row.seed] for row in entry.rows if row.seed in base])
            for method in self.competitors
            if method != but and base and not (entry := self.entries[data, method]).state
        }
        found = {}
        for method, p_value in zip(differences, corrected(list(differences.values())), strict=True):
            verdict = differences[method].verdict(self.metric.higher, p_value)
            unjudged = verdict == "worse" and method in self.track.few_rates
            found[method] = TOO_FEW_RATES if unjudged else verdict
        return found

    def tally(self, method: str, reference: str) -> tuple[int, int]:
        """Return on how many federations a method is better, and on how many worse, than another."""
        verdicts = [self.leads(data, reference).get(method) for data in self.federations]
        return verdicts.count("better"), verdicts.count("worse")

    @cached_property
    def standings(self) -> dict[str, Standing]:
        """How the methods stand on the federations of which all runs and constants are known.

        Differences are paired by seed; p-values are adjusted for all methods (Holm).
        """
        found = {}
        for data in self.ranked:
            base = self.constants.get(data, {})
            if set(SEEDS) <= base.keys():
                said = list(self._verdicts(data, base).values())
                found[data] = Standing(said.count("better"), said.count("worse"), len(said))
        return found

    @property
    def not_learned(self) -> dict[str, Standing]:
        """The federations on which at most one method is better than a constant prediction."""
        return {data: each for data, each in self.standings.items() if each.better <= _MOST}

    @cached_property
    def learned(self) -> Board:
        """The federations on which more are; those whose constants are not known are in neither."""
        names = tuple(data for data, each in self.standings.items() if each.better > _MOST)
        return replace(self, federations=names)


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
    tuning = [row for row in rows if row.stage == TUNING]
    scored = tuple(row for row in final if row.scored)
    cannot = pair not in found.candidates and pair[1] in found.methods
    candidates = len(found.candidates.get(pair, ()))
    lost = len(tuning) == candidates > 0 and all(row.status == "diverged" for row in tuning)
    if cannot or lost or any(not row.scored for row in final):
        return Entry(NONE, scored)
    return Entry("" if {row.seed for row in scored} >= set(SEEDS) else OPEN, scored)


@dataclass(frozen=True)
class Costs:
    """What a method costs, over all federations on which it has a score.

    Attributes
    ----------
    kilobytes : float
        Per client and round, up and down: mean over federations.
    flops : float
        Of a run, in FedAvg's on the same federation: geometric mean.
    reached : float
        Share of the runs that reach FedAvg's mean validation score.
    seconds : float
        CPU seconds until then, in FedAvg's mean on the same federation: median over the runs that do.
    """

    kilobytes: float
    flops: float
    reached: float
    seconds: float


def cost(found: Board, method: str) -> Costs:
    """Return what a method costs."""
    bytes_, flops, reached, seconds = [], [], [], []
    for data in found.federations:
        rows, base = found.entry(data, method).rows, found.entry(data, REFERENCE).rows
        if not rows or not base:
            continue
        bytes_.append(mean(row.bytes_per_client for row in rows))
        flops.append(_ratio(mean(row.model_gflop for row in rows), mean(row.model_gflop for row in base)))
        reached += [not math.isnan(row.rounds_to_target) for row in rows if not math.isnan(row.target)]
        usual = mean(row.cpu_seconds_to_target for row in base)
        seconds += [_ratio(row.cpu_seconds_to_target, usual) for row in rows]
    known = [each for each in seconds if not math.isnan(each)]
    return Costs(
        mean(bytes_) / 1e3,
        math.exp(mean(math.log(each) for each in flops if each)),
        mean(reached),
        float(np.median(known)) if known else math.nan,
    )


def _ratio(value: float, base: float) -> float:
    """Return how many times a value is another; NaN where that is 0: less than what was measured."""
    return value / base if base else math.nan


def mean(values: Iterable[float]) -> float:
    """Return the mean without NaN; NaN where nothing is left."""
    known = [each for each in values if not math.isnan(each)]
    return float(np.mean(known)) if known else math.nan
