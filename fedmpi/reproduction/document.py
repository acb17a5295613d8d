"""The document: a first page, and a page per paper with tables, verdicts and studies, from stored rows.

The text is in the templates beside this file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from fedmpi.analysis.cells import grouped
from fedmpi.judging.estimates import FEWEST
from fedmpi.judging.spreads import LEVEL_OF_SPREADS
from fedmpi.reproduction import lessons, openings, overview, scores, studies, tables, verdicts
from fedmpi.reproduction.cells import Compared, compare
from fedmpi.reproduction.published import GAINS, MARGIN, PAPERS, Paper
from fedmpi.reproduction.results import Results

_KINDS: dict[str, tuple[str, Callable[[Sequence[Compared], Sequence[str]], str], tables.Columns]] = {
    "clients": ("average accuracies", tables.in_short, tables.COLUMNS),
    "clusters": ("scores of clusters", scores.clusters_in_short, scores.CLUSTERS),
    "scores": ("scores", scores.in_short, scores.COLUMNS),
}
"""By what a paper's runs are scored: what its figures are called, how they are summed up and shown."""


def cells(results: Results) -> list[Compared]:
    """Return the published figures of all papers beside ours."""
    return [each for paper in PAPERS for each in compare(paper.figures, results)]


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
    lines = [(paper["name"], f"{name}/{paper['stem']}.md", paper["tallies"]) for paper in papers]
    coverage = {paper["name"]: openings.coverage(paper["found"]) for paper in papers}
    learnt = lessons.sections(results)
    first = {"table": overview.table(lines), "coverage": openings.coverage_table(coverage)}
    return {
        f"{name}.md": _rendered(
            "overview.md", name=name, papers=papers, margin=MARGIN, version=results.version, **first
        ),
        "lessons.md": _rendered(
            "lessons.md", sections=learnt, summary=lessons.summary(learnt), fewest=FEWEST
        ),
        f"{name}/verdicts.svg": _rendered("verdicts.svg", **overview.picture(lines)),
        f"{name}/how-to-read.md": _rendered(
            "how-to-read.md", margin=MARGIN, level_of_spreads=LEVEL_OF_SPREADS
        ),
        **{f"{name}/{paper['stem']}.md": _rendered("paper.md", name=name, paper=paper) for paper in papers},
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
    (what, in_short, _), of_clients = _KINDS[paper.scored], paper.scored == "clients"
    members = [each for each in found if each.published.paper == paper.name]
    judged = verdicts.verdicts(paper.claims, paper.figures, results)
    listed = [
        each for each in judged if of_clients or (each.first.kind, each.first.source) != ("lead", "table")
    ]
    unpublished = [each.published.unpublished for each in members if each.published.unpublished]
    places = grouped(
        (each for each in members if not each.published.lacks), lambda each: each.published.place
    )
    return {
        **vars(paper),
        "stem": paper.name.lower(),
        "found": members,
        "coverage": openings.coverage_text(members),
        "unpublished": ", ".join(dict.fromkeys(part for each in unpublished for part in each.split(", "))),
        "lacking": openings.lacking_table(members),
        "open_cells": openings.open_table(members),
        "legend": tables.legend(members, paper.rules),
        "tallies": overview.of_figures(what, members, paper.rules) + overview.of_claims(judged, paper.rules),
        "in_short": in_short(members, paper.rules)
        + verdicts.in_short(listed, paper.rules)
        + tables.selection_text(members),
        "verdicts": verdicts.verdict_tables(listed, paper.rules),
        "tables": [_table(paper, of_table) for of_table in places.values()],
        "settings": [(suite, scores.settings_table(results, suite)) for suite in paper.others],
        "queue": openings.queue_table(results, paper.queue),
        **(_of_clients if of_clients else _whole)(paper, members, results),
    }


def _table(paper: Paper, found: Sequence[Compared]) -> dict[str, Any]:
    """Return the parts of a published table."""
    first, columns = found[0].published, _KINDS[paper.scored][-1]
    by_metric = grouped(found, lambda each: each.published.metric)
    metrics = [
        {
            "name": metric,
            "figures": tables.figure_table(members, columns, paper.rules),
            "spreads": tables.spread_text(members, paper.rules),
            "leads": scores.lead_table(members) if paper.scored == "clusters" else "",
        }
        for metric, members in by_metric.items()
        if metric not in GAINS
    ]
    return {
        "name": first.place,
        "suite": first.suite,
        "metrics": metrics,
        "notes": tables.notes(found),
        "gains": tables.gains_table(found, paper.rules),
        "grids": tables.grids(found, paper.rules),
        "at_constant": tables.at_constant(found),
    }


def _of_clients(paper: Paper, found: Sequence[Compared], results: Results) -> dict[str, Any]:
    """Return the sections of a paper with accuracies of clients: on baselines, other splits and ablation."""
    reference = [cell for suite in paper.tables for cell in studies.cells_of(results, suite)]
    sections = {"counts": tables.counts_table(found), "domains": studies.domain_table(reference)}
    if not paper.splits:
        return sections
    first, claims, figures = paper.tables[0], paper.claims, paper.figures
    return sections | {
        "leads": studies.lead_table(reference),
        "gains": studies.gain_table(reference),
        "spreads": studies.spread_table(reference, figures, results),
        "split_accuracies": studies.split_accuracies(results, first, paper.splits),
        "split_leads": studies.split_leads(results, paper.splits, claims, figures),
        "switches": studies.ablation_table(results, paper.ablation, first),
        "without_twins": studies.clean_table(reference),
    }


def _whole(paper: Paper, found: Sequence[Compared], results: Results) -> dict[str, Any]:
    """Return the sections of a paper whose runs are scored as a whole."""
    return {
        "changes": scores.changes_table(results, paper.ablation, found) if paper.ablation else "",
        "honest": scores.honest_table(results, found),
    }
