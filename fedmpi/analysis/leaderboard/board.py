"""A track's board: what each method scores on each federation, its ranks, its leads and its costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.leaderboard.constants import Constant
from fedmpi.analysis.leaderboard.rows import FINAL, REFERENCE, TUNING, Row
from fedmpi.analysis.leaderboard.track import SEEDS, Pair, Track
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import Estimate, estimate
from fedmpi.judging.families import corrected
from fedmpi.judging.ranking import Ranking, ranking
from fedmpi.judging.ranking import ranks as ranks_of
from fedmpi.metrics.metric import ACCURACY, METRICS, Metric

UNRANKED = ("centralised",)
"""Methods that are shown beside the others: what is not federated is a reference."""

TOO_FEW_RATES = "too few rates"
"""What is said of a method in place of "worse" where it had too few rates."""

OPEN, NONE = "open", "none"
"""States of a pair without a score: runs are missing; it cannot run there, or has diverged."""


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


@dataclass(frozen=True)
class Board:
    """A track.

    Attributes
    ----------
    name : str
    argument : str
        How commands name the track.
    bundled : bool
        Whether it is one of fedmpi's own.
    metric : Metric
    federations, methods : tuple of str
        Labels, in the suite's order; the methods with those that are not ranked.
    entries : dict
        Of each federation and method.
    ranked : tuple of str
        Federations on which every ranked method has a score or cannot have one.
    ranks : dict
        Of each ranked method by federation, in the order of `ranked`; 1 is the best.
    ranking : Ranking or None
        Over `ranked`, of the methods in the order of `ranks`; None with fewer than two.
    constants : dict
        What a constant prediction scores on each federation, by seed.
    few_rates : dict
        The rates of methods that had too few to be called worse than others.
    """

    name: str
    argument: str
    bundled: bool
    metric: Metric
    federations: tuple[str, ...]
    methods: tuple[str, ...]
    entries: dict[Pair, Entry]
    ranked: tuple[str, ...]
    ranks: dict[str, list[float]]
    ranking: Ranking | None
    constants: dict[str, dict[int, float]]
    few_rates: dict[str, tuple[float, ...]]

    @property
    def competitors(self) -> list[str]:
        """Methods that are ranked, the best first; in the suite's order while nothing is ranked."""
        listed = [method for method in self.methods if method not in UNRANKED]
        return sorted(listed, key=self.average) if self.ranking else listed

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
        apart = [method for method in self.competitors if method not in self.alike] if self.ranking else []
        return [method for method in apart if method not in self.few_rates]

    @property
    def open(self) -> dict[str, int]:
        """How many methods are open on each federation that is not finished."""
        counts = {
            data: sum(self.entries[data, method].state == OPEN for method in self.methods)
            for data in self.federations
        }
        return {data: count for data, count in counts.items() if count}

    def entry(self, data: str, method: str) -> Entry:
        """Return how a method stands on a federation; one that is not there cannot run."""
        return self.entries.get((data, method), Entry(NONE, ()))

    def average(self, method: str) -> float:
        """Return a method's average rank; NaN while nothing is ranked."""
        ranks = self.ranks.get(method) if self.ranking else None
        return float(np.mean(ranks)) if ranks else math.nan


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
    pairs = [(data, method) for data in federations for method in methods]
    entries = {pair: _entry(found, pair, by_pair.get(pair, [])) for pair in pairs}
    competing = [method for method in methods if method not in UNRANKED]
    whole = [data for data in federations if all(entries[data, each].state != OPEN for each in competing)]
    metric = _metric(rows)
    by_federation = [ranks([entries[data, each] for each in competing], metric) for data in whole]
    table = np.array(by_federation)
    return Board(
        found.name,
        found.argument,
        found.bundled,
        metric,
        federations,
        methods,
        entries,
        tuple(whole),
        {method: [row[place] for row in by_federation] for place, method in enumerate(competing)},
        ranking(table) if len(whole) > 1 and len(competing) > 2 else None,
        {
            data: {each.seed: each.constant for each in listed}
            for data, listed in grouped(
                [each for each in constants if each.metric == metric.name], lambda each: each.data
            ).items()
        },
        found.few_rates,
    )


def _metric(rows: Sequence[Row]) -> Metric:
    listed = sorted({row.metric for row in rows}) or [ACCURACY.name]
    if len(listed) > 1 or listed[0] not in METRICS:
        raise BadInput(f"rows of the metric {', '.join(listed)}: a track has one, and it is one of fedmpi's")
    return METRICS[listed[0]]


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


def ranks(entries: Sequence[Entry], metric: Metric) -> list[float]:
    """Return the ranks of entries, 1 for the best.

    Scores that are printed alike share their ranks; entries without a score share the last ones.
    """
    values = [
        -math.inf if entry.state else metric.sign * float(metric.shown(entry.score.mean)) for entry in entries
    ]
    return list(ranks_of(values).tolist())


def leads(found: Board, data: str, reference: str = REFERENCE) -> dict[str, str]:
    """Return whether each ranked method is better or worse than another on a federation, or undecided.

    Differences are paired by seed, and so by partition; p-values are adjusted for all methods (Holm).
    """
    if reference in found.few_rates:  # better than it would say that it is worse
        return dict.fromkeys((each for each in found.competitors if each != reference), TOO_FEW_RATES)
    other = found.entry(data, reference)
    base = {} if other.state else {row.seed: row.test for row in other.rows}
    return verdicts(found, data, base, but=reference)


def verdicts(found: Board, data: str, base: Mapping[int, float], but: str = "") -> dict[str, str]:
    """Return what each ranked method is against scores by seed, but for one method."""
    differences: dict[str, Estimate] = {}
    for method in found.competitors:
        entry = found.entries[data, method]
        if method != but and base and not entry.state:
            differences[method] = estimate(
                [row.test - base[row.seed] for row in entry.rows if row.seed in base]
            )

    def said(method: str, p_value: float) -> str:
        verdict = differences[method].verdict(found.metric.higher, p_value)
        return TOO_FEW_RATES if verdict == "worse" and method in found.few_rates else verdict

    p_values = corrected(list(differences.values()))
    return {method: said(method, p_value) for method, p_value in zip(differences, p_values, strict=True)}


def tally(found: Board, method: str, reference: str) -> tuple[int, int]:
    """Return on how many federations a method is better, and on how many worse, than another."""
    verdicts = [leads(found, data, reference).get(method) for data in found.federations]
    return verdicts.count("better"), verdicts.count("worse")


def cost(found: Board, method: str) -> Costs:
    """Return what a method costs."""
    bytes_, flops, reached, seconds = [], [], [], []
    for data in found.federations:
        rows, base = found.entry(data, method).rows, found.entry(data, REFERENCE).rows
        if not rows or not base:
            continue
        bytes_.append(_mean(row.bytes_per_client for row in rows))
        flops.append(_ratio(_mean(row.model_gflop for row in rows), _mean(row.model_gflop for row in base)))
        reached += [not math.isnan(row.rounds_to_target) for row in rows if not math.isnan(row.target)]
        usual = _mean(row.cpu_seconds_to_target for row in base)
        seconds += [_ratio(row.cpu_seconds_to_target, usual) for row in rows]
    known = [each for each in seconds if not math.isnan(each)]
    return Costs(
        _mean(bytes_) / 1e3,
        math.exp(_mean(math.log(each) for each in flops if each)),
        _mean(reached),
        float(np.median(known)) if known else math.nan,
    )


def _ratio(value: float, base: float) -> float:
    """Return how many times a value is another; NaN where that is 0: less than what was measured."""
    return value / base if base else math.nan


def _mean(values: Iterable[float]) -> float:
    """Return the mean without NaN; NaN where nothing is left."""
    known = [each for each in values if not math.isnan(each)]
    return float(np.mean(known)) if known else math.nan


def names(listed: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"
