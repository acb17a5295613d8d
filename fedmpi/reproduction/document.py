"""The document: a first page, and a page per paper with tables, verdicts and studies, from stored rows.

The text is in the templates beside this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from fedmpi.judging.estimates import FEWEST
from fedmpi.judging.spreads import LEVEL_OF_SPREADS
from fedmpi.reproduction import clusterings, lessons, openings, overview, scores, studies, tables, verdicts
from fedmpi.reproduction.cells import MARGIN, Compared, compare
from fedmpi.reproduction.chart import chart
from fedmpi.reproduction.grid import at_constant, grids, legend
from fedmpi.reproduction.papers import PAPERS, Paper
from fedmpi.reproduction.results import Cell, Results

_KINDS: dict[str, tuple[Any, Any]] = {
    "clients": (tables, overview.of_clients),
    "clusters": (clusterings, overview.of_clusters),
    "scores": (scores, overview.of_scores),
}
"""By what a paper's runs are scored: the module that shows them, and how they are tallied."""


def cells(results: Results) -> list[Compared]:
    """Return the published figures of all papers beside ours."""
    return [each for paper in PAPERS for each in compare(paper.figures(), results)]


def pages(results: Results, found: Sequence[Compared], name: str) -> dict[str, str]:
    """Return the document's files by their paths, beside its first page; they depend on the rows only.

    Parameters
    ----------
    results : Results
    found : sequence of Compared
        What `cells` returns.
    name : str
        The first page's file name without its suffix; the other files are in a folder of this name.
    """
    papers = [_sections_of(paper, found, results) for paper in PAPERS]
    tallies = [(paper["name"], paper["tallies"]) for paper in papers]
    coverage = {paper["name"]: openings.coverage(paper["found"]) for paper in papers}
    lines = [(title, f"{name}/{title.lower()}.md", each) for title, each in tallies]
    learnt = lessons.sections(results)
    return {
        f"{name}.md": _rendered(
            "overview.md",
            name=name,
            table=overview.table(lines),
            papers=[{**paper, "stem": paper["name"].lower()} for paper in papers],
            coverage=openings.coverage_table(coverage),
            margin=MARGIN,
            version=results.version,
        ),
        "lessons.md": _rendered(
            "lessons.md", sections=learnt, summary=lessons.summary(learnt), fewest=FEWEST
        ),
        f"{name}/verdicts.svg": _rendered("verdicts.svg", **chart(tallies)),
        f"{name}/how-to-read.md": _rendered(
            "how-to-read.md", margin=MARGIN, level_of_spreads=LEVEL_OF_SPREADS
        ),
        **{
            f"{name}/{paper['name'].lower()}.md": _rendered("paper.md", name=name, paper=paper)
            for paper in papers
        },
    }


def _rendered(template: str, **values: Any) -> str:
    """Return a template of this package filled in."""
    source = files("fedmpi.reproduction").joinpath(f"{template}.j2").read_text()
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(source).render(**values).strip("\n") + "\n"


def _sections_of(paper: Paper, found: Sequence[Compared], results: Results) -> dict[str, Any]:
    """Return what the template of a paper's page needs, and its tallies.

    Where whole runs are scored, leads of the paper's own method stand with its tables, not with other claims.
    """
    kind, tally = _KINDS[paper.scored]
    members = [each for each in found if each.published.paper == paper.name]
    judged = verdicts.verdicts(paper.claims(), paper.figures(), results)
    listed = [
        each for each in judged if kind is tables or (each.first.kind, each.first.source) != ("lead", "table")
    ]
    names = dict.fromkeys(each.published.place for each in members if not each.published.lacks)
    return {
        **vars(paper),
        **_openings(members),
        "found": members,
        "legend": legend(members, paper.rules),
        "tallies": tally(members, paper.rules) + overview.of_claims(judged, paper.rules),
        "in_short": kind.in_short(members, paper.rules)
        + verdicts.in_short(listed, paper.rules)
        + tables.selection_text(members),
        "verdicts": verdicts.verdict_tables(listed, paper.rules),
        "tables": [_table(paper, members, name, kind.COLUMNS) for name in names],
        "settings": [(suite, clusterings.settings_table(results, suite)) for suite in paper.others],
        **(_of_clients(paper, members, results) if kind is tables else _whole(paper, members, results)),
        **(_studies(paper, results) if paper.splits else {}),
    }


def _openings(found: Sequence[Compared]) -> dict[str, str]:
    return {
        "coverage": openings.coverage_text(found),
        "unpublished": ", ".join(dict.fromkeys(part for each in found for part in each.published.settings)),
        "lacking": openings.lacking_table(found),
        "open_cells": openings.open_table(found),
    }


def _of_clients(paper: Paper, found: Sequence[Compared], results: Results) -> dict[str, Any]:
    """Return the sections of a paper with accuracies of clients."""
    suites = (*paper.tables, *filter(None, (paper.splits, paper.ablation)))
    return {
        "counts": tables.counts_table(found),
        "domains": studies.domain_table(_cells(paper, results)),
        "queue": openings.queue_table(results, suites),
    }


def _whole(paper: Paper, found: Sequence[Compared], results: Results) -> dict[str, Any]:
    """Return the sections of a paper whose runs are scored as a whole."""
    return {
        "changes": scores.changes_table(results, paper.ablation, found) if paper.ablation else "",
        "honest": scores.honest_table(results, found),
        "queue": openings.queue_table(results, paper.tables),
    }


def _studies(paper: Paper, results: Results) -> dict[str, Any]:
    """Return the sections on a paper's baselines, other splits and ablation."""
    figures, claims = paper.figures(), paper.claims()
    reference = _cells(paper, results)
    return {
        "leads": studies.lead_table(reference),
        "gains": studies.gain_table(reference),
        "spreads": studies.spread_table(reference, figures, results),
        "split_accuracies": studies.split_accuracies(results, paper.tables[0], paper.splits),
        "split_leads": studies.split_leads(results, paper.splits, claims, figures),
        "switches": studies.ablation_table(results, paper.ablation, paper.tables[0]),
        "without_twins": studies.clean_table(reference),
    }


def _cells(paper: Paper, results: Results) -> list[Cell]:
    """Return the cells of a paper's tables that have runs."""
    return [cell for suite in paper.tables for cell in studies.cells_of(results, suite)]


def _table(paper: Paper, found: Sequence[Compared], name: str, columns: tables.Columns) -> dict[str, Any]:
    """Return the parts of a published table, as far as its cells can be computed."""
    members = [each for each in found if each.published.place == name and not each.published.lacks]
    made = tables.parts(members, columns, paper.rules)
    for each in made["metrics"] if paper.scored == "clusters" else ():
        alike = [one for one in members if one.published.metric == each["name"]]
        each["leads"] = clusterings.leads(alike)
    made["gains"] = tables.gains_table(members, paper.rules)
    return {**made, "grids": grids(members, paper.rules), "at_constant": at_constant(members)}
