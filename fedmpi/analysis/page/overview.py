"""The table of all datasets and algorithms, by the metric that their runs are judged by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.columns import score
from fedmpi.analysis.page.cells import EQUAL, Cell, Line, Setting, by_metric, direction, lines
from fedmpi.analysis.page.collect import ALONE, Float
from fedmpi.analysis.page.fronts import ON_A_FRONT
from fedmpi.analysis.page.sections import Section, leaders, part, table
from fedmpi.analysis.page.units import Unit, amounts
from fedmpi.analysis.scores import BEST, LAST, PUBLISHED, rules
from fedmpi.metrics.metric import Metric
from fedmpi.store.schema import MEAN_MODEL
from fedmpi.tables.table import NONE, Column, Entry, filled, number, share, words

_MEANINGS = {
    "client": {
        LAST: "mean over clients and seeds ± 95 % interval over seeds (Student's t)",
        BEST: "each client at its best round by validation",
        PUBLISHED: "a client's best test value at splits of its cluster, chosen on test data",
    },
    "pooled": {
        LAST: "over all clients' test examples together, each under its client's new model; "
        "mean over seeds ± 95 % interval",
        BEST: "test score in the round of the best validation score",
        PUBLISHED: "the best test score of any round, chosen on test data",
    },
    "all": {LAST: "over all clients' examples together; mean over seeds ± 95 % interval"},
}
"""What a headline's value is by its scope and the rule of selection."""


def overview(settings: Sequence[Setting]) -> Section:
    """Return a table for each headline, and what its reader should know."""
    parts, costs = [], [cost.heading for cost in COSTS]
    for place, alike in enumerate(by_metric(settings)):
        metric = alike[0].metric
        caption = f"Every dataset and algorithm by {metric.title}, {direction(metric)}"
        scores = [each for each in columns(alike) if each.heading not in costs]
        parts.append(table(caption, scores, lines(alike), f"cells-{place}", ""))
        parts.append(part("overview")("" if metric.scope == "client" else metric.title))
    return Section("overview", "All scores", Markup("").join(parts))


_CONSTANT = {
    False: "of a prediction that is the same for every example",
    True: "the same prediction for every example of a client: for accuracy its most frequent training class",
}
"""What a constant prediction is, by whether clients have scores of their own."""


def columns(settings: Sequence[Setting]) -> list[Column[Line]]:
    """Return the columns of settings with one headline, without those in which none has anything."""
    metric = settings[0].metric
    further = {each.name: each for setting in settings for each in setting.metrics if each != metric}
    field, rows = metric.field(), lines(settings)
    listed = [
        _figure(metric, "constant", "constant", _CONSTANT[metric.scope == "client"], True),
        *(
            _figure(
                each, each.field(), each.label(unit=True),
                _meaning(each, "" if each.higher else direction(each)), True,
            )
            for each in further.values()
        ),
        _figure(
            metric, f"{field}_without_twins", "without twins",
            "last round, over test examples that have no isomorphic twin in a training set",
        ),
        _figure(
            metric, f"worst_client_{metric.name}", "worst client",
            f"worst {metric.title} of a client, mean over seeds", True,
        ),
        Column(
            "gain over self-train", _gain_entry,
            f"{metric.points} mean over clients, over the seeds that both have".strip(),
        ),
        _figure(
            metric, f"{MEAN_MODEL}{field}", "mean model",
            "last round, with the mean of the clients' models in place of each one's own",
        ),
        _figure(
            metric, f"benign_{field}", "benign clients",
            "last round, mean over clients that do not attack",
        ),
        Column(
            "attackers among attackers", lambda line: share(line[1].mean("attackers_together"), 1),
            "share of attackers in an attacker's group at the end, %",
        ),
        of_runs("epsilon", "epsilon", 2, "privacy spent at the end, by client (docs/privacy.md)", True),
        Column("clusters", _clusters, "clusters at the end, mean over seeds, of algorithms that split them"),
    ]  # fmt: skip
    last, *others = (_headline(metric, rule) for rule in rules(metric))
    listed += [_to_target("rounds", 0, 1), _to_target("seconds", 1, 4)]
    spare = (*others, *filled(listed, rows), *filled(COSTS, rows))
    return [
        *(*NAMES, last, *leads(settings)),
        *(replace(each, spare=each.spare or place) for place, each in enumerate(spare, 5)),
    ]


_VERDICT = (
    "better or worse: p < 0.05 after Holm over the dataset's leads; equal: the same models and scores in "
    "every round"
)


def leads(settings: Sequence[Setting]) -> list[Column[Line]]:
    """Return the columns of leads, none where nothing can lead."""
    over = {lead.over.label.partition(", ")[0] for each in settings for lead in each.leads.values()}
    if not over:
        return []

    def entry(line: Line) -> Entry:
        ahead = line[0].lead(line[1])
        return score(line[1].metric, None if ahead is None else ahead.gap, sign="+")

    def verdict(line: Line) -> str:
        ahead = line[0].lead(line[1])
        alone = NONE if len(line[0].cells) == 1 else "reference"
        return alone if ahead is None else ahead.verdict

    title = f"lead over {over.pop() if len(over) == 1 else 'the reference'}"
    meaning = f"{settings[0].metric.points} by which it is better, over the seeds that both have"
    return [
        Column(title, entry, f"{meaning.strip()}, ± 95 % interval of the differences by seed", pasted=True),
        Column("verdict", verdict, _VERDICT, pasted=True),
    ]


def records(settings: Sequence[Setting]) -> list[dict[str, Any]]:
    """Return the headline's mean over seeds and its lead as JSON values, per dataset and algorithm."""
    return [_record(*line) for line in lines(settings)]


def _record(setting: Setting, cell: Cell) -> dict[str, Any]:
    own, ahead = cell.score(), setting.lead(cell)
    return {
        "dataset": setting.heading,
        "algorithm": cell.label,
        "rounds": cell.config["rounds"],
        "seeds": list(cell.runs),
        "metric": cell.metric.name,
        "better": cell.metric.better,
        cell.metric.field(): own.mean,
        "half": own.half,
        "reference": None if ahead is None else ahead.over.label,
        "lead": math.nan if ahead is None else ahead.gap.mean,
        "lead_half": math.nan if ahead is None else ahead.gap.half,
        "pairs": 0 if ahead is None else ahead.gap.count,
        "p_value": math.nan if ahead is None else ahead.p_value,
        "verdict": None if ahead is None else ahead.verdict,
    }


def _to_target(unit: str, digits: int, spare: int) -> Column[Line]:
    """Return the column of what it took to reach the target, or how many of the runs did."""

    def entry(line: Line) -> Entry:
        reached = [run.summary["to_target"] for run in line[1].runs.values() if "target" in run.summary]
        values = [each[unit] for each in reached if each is not None]
        if len(values) < len(reached):
            return words(f"{len(values)} of {len(reached)} runs")
        return number(float(np.mean(values)) if values else None, digits)

    return Column(f"{'s' if unit == 'seconds' else unit} to target", entry, "mean over seeds", spare)


def _headline(metric: Metric, rule: str) -> Column[Line]:
    def entry(line: Line) -> Entry:
        setting, cell = line
        best = rule != PUBLISHED and len(setting.cells) > 1 and cell in ahead(setting, rule)
        return score(metric, cell.score(rule), "best" if best else "")

    title = f"{metric.label(unit=True)}, {rule}" if rule == LAST else rule
    return Column(title, entry, _meaning(metric, _MEANINGS[metric.scope][rule]), pasted=True)


def _meaning(metric: Metric, text: str) -> str:
    """Return a text after what the metric is, where its title does not say that already."""
    known = metric.meaning.lower() in ("", metric.title.lower())
    return text if known else "; ".join(filter(None, (metric.meaning, text)))


def _figure(metric: Metric, name: str, title: str, meaning: str, pasted: bool = False) -> Column[Line]:
    def entry(line: Line) -> Entry:
        found = line[1].figure(name)
        return score(metric, found if name.endswith(metric.field()) else found.mean)

    return Column(title, entry, meaning, pasted=pasted)


def ahead(setting: Setting, rule: str = LAST) -> list[Cell]:
    """Return the cells of the best headline, several where they tie; of equal ones the reference alone.

    Cells with fewer seeds than others are not among them.
    """
    most = max(len(cell.runs) for cell in setting.cells)
    whole = [cell for cell in setting.cells if len(cell.runs) == most]
    own = [cell for cell in whole if (lead := setting.lead(cell)) is None or lead.verdict != EQUAL]
    metric = setting.metric
    return leaders(own, lambda cell: metric.sign * metric.scale * cell.score(rule).mean, metric.digits)


def gain(setting: Setting, cell: Cell) -> tuple[Float, Cell] | None:
    """Return each client's mean gain over its self-train, and that; None where there is none to compare with.

    Both are means over the seeds that both have.
    """
    reference = setting.reference(cell, ALONE)
    if cell.algorithm == ALONE or reference is None or cell.metric.scope != "client":
        return None
    seeds = [seed for seed in cell.runs if seed in reference.runs]
    if not seeds:
        return None
    own, alone = (each.values(LAST, seeds).mean(axis=0) for each in (cell, reference))
    return cell.metric.sign * cell.metric.scale * (own - alone), reference


def _gain_entry(line: Line) -> Entry:
    found = gain(*line)
    return number(None if found is None else float(np.nanmean(found[0])), line[1].metric.digits)


def _clusters(line: Line) -> Entry:
    splits = line[1].mean("splits")
    return number(1 + splits if splits else None, 1)


def of_runs(title: str, name: str, digits: int, meaning: str = "", pasted: bool = False) -> Column[Line]:
    """Return the column of a figure of the runs' summaries, its mean over seeds.

    Parameters
    ----------
    title : str
    name : str
        Of the figure in a summary.
    digits : int
        After the point.
    meaning : str
        What a reader learns of the column below the table.
    pasted : bool
        Whether it is in Markdown and LaTeX, too.
    """
    return Column(title, lambda line: number(line[1].mean(name), digits), meaning, pasted=pasted)


def spent(title: str, name: str, units: Sequence[Unit], meaning: str) -> Column[Line]:
    """Return the column of a cost of the runs in human units, its mean over seeds; for the page alone."""
    return amounts(title, lambda line: line[1].mean(name), units, meaning)


NAMES = (
    Column[Line]("dataset", lambda line: words(line[0].heading), pasted=True),
    Column[Line]("algorithm", lambda line: words(line[1].label, "name"), pasted=True),
)
COSTS = (
    Column[Line]("rounds", lambda line: number(line[1].config["rounds"], 0), spare=3, pasted=True),
    Column[Line]("seeds", lambda line: number(len(line[1].runs), 0), spare=2, pasted=True),
    of_runs("s/round", "round_seconds_median", 3, "median over rounds, mean over seeds", True),
    of_runs("total s", "total_seconds", 1, "all rounds, mean over seeds", True),
    of_runs("model GFLOP", "model_gflop", 0),
    of_runs("client MB", "client_megabytes", 0),
    of_runs("MB up", "client_megabytes_up", 0),
    of_runs("virtual s", "virtual_clock", 1, "after the last step, of the clients' devices", True),
    ON_A_FRONT,
)
