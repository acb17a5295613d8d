"""The document: published tables, verdicts, studies and what is open, all from stored rows.

Its text is in ``document.md.j2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from fedmpi.config import locations
from fedmpi.reproduction import clusterings, openings, scores, studies, tables, verdicts
from fedmpi.reproduction.cells import AS_PUBLISHED, BY_VALIDATION, HEADLINE, MARGIN, Compared, compare
from fedmpi.reproduction.published import Claim, Published, read, read_claims
from fedmpi.reproduction.results import Results
from fedmpi.reproduction.statistics import LEVEL_OF_SPREADS


@dataclass(frozen=True)
class Paper:
    """A paper and the suites that compute it.

    Attributes
    ----------
    name : str
        As in the column `paper` of its CSV files, which lie beside its suites.
    title : str
    tables : tuple of str
        Suites of its tables; what the splits and the ablation are compared with is in the first.
    splits, ablation : str
        Suites; papers whose runs are scored as a whole have no other splits, and may have no ablation.
    scored : str
        What a whole run is scored by: "clusters" or "scores"; "clients" (or nothing, with splits and
        ablation) where clients are.
    others : tuple of str
        Suites of other settings of a paper scored by clusters.
    rules : tuple of str
        Where clients are scored: the selection rules that figures and claims are judged under.
    """

    name: str
    title: str
    tables: tuple[str, ...]
    splits: str = ""
    ablation: str = ""
    scored: str = ""
    others: tuple[str, ...] = ()
    rules: tuple[str, ...] = (AS_PUBLISHED, HEADLINE)

    def figures(self) -> list[Published]:
        """Return what it prints."""
        return read(locations.find(self.tables[0]).with_name("published.csv"))

    def claims(self) -> list[Claim]:
        """Return what it claims."""
        return read_claims(locations.find(self.tables[0]).with_name("claims.csv"))


PAPERS = (
    Paper(
        "GCFL",
        "Xie, Ma, Xiong, Yang: Federated graph classification over non-IID graphs, NeurIPS 2021",
        ("gcfl/table3", "gcfl/table4"),
        "gcfl/splits",
        "gcfl/ablation",
    ),
    Paper(
        "FCLG",
        "Li, Agrawal, Ramnath, Jin: Federated contrastive learning of graph-level representations, "
        "IEEE BigData 2024",
        ("fclg/table2", "fclg/table3"),
        scored="clusters",
        others=("fclg/sweep", "fclg/causes"),
    ),
    Paper(
        "FedCCH",
        "Jiao et al.: FedCCH, IJCAI 2025, doi 10.24963/ijcai.2025/333",
        ("fedcch/table1",),
        scored="clients",
        rules=(HEADLINE, BY_VALIDATION),
    ),
    Paper(
        "FedGraphNN",
        "He et al.: FedGraphNN, a federated learning system and benchmark for graph neural networks, 2021",
        ("fedgraphnn/table2", "fedgraphnn/table20", "fedgraphnn/table3", "fedgraphnn/table4"),
        ablation="fedgraphnn/freesolv",
        scored="scores",
    ),
)


_KINDS: dict[str, Any] = {"clusters": clusterings, "scores": scores}


def cells(results: Results) -> list[Compared]:
    """Return the published figures of all papers beside ours."""
    return [each for paper in PAPERS for each in compare(paper.figures(), results)]


def document(results: Results, found: Sequence[Compared]) -> str:
    """Return the document, Markdown; it depends on the rows only."""
    source = files("fedmpi.reproduction").joinpath("document.md.j2").read_text()
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    papers, coverage = [], {}
    for paper in PAPERS:
        members = [each for each in found if each.published.paper == paper.name]
        papers.append({**vars(paper), **_openings(members), **_sections_of(paper, members, results)})
        coverage[paper.name] = openings.coverage(members)
    page = environment.from_string(source).render(
        version=results.version,
        margin=MARGIN,
        level_of_spreads=LEVEL_OF_SPREADS,
        coverage=openings.coverage_table(coverage),
        papers=papers,
    )
    return page.rstrip("\n") + "\n"


def _sections_of(paper: Paper, found: Sequence[Compared], results: Results) -> dict[str, Any]:
    if paper.scored == "clients":
        return _tables(paper, found, results)
    return _sections(paper, found, results) if paper.splits else _whole(paper, found, results)


def _openings(found: Sequence[Compared]) -> dict[str, str]:
    return {
        "coverage": openings.coverage_text(found),
        "unpublished": ", ".join(dict.fromkeys(part for each in found for part in each.published.settings)),
        "lacking": openings.lacking_table(found),
        "open_cells": openings.open_table(found),
    }


def _tables(paper: Paper, found: Sequence[Compared], results: Results) -> dict[str, Any]:
    """Return the sections of a paper with accuracies of clients."""
    verdict = verdicts.verdicts(paper.claims(), paper.figures(), results)
    return {
        "in_short": tables.in_short(found, paper.rules)
        + verdicts.in_short(verdict, paper.rules)
        + tables.selection_text(found),
        "verdicts": verdicts.verdict_tables(verdict, paper.rules),
        "tables": [
            _table(paper, found, name) for name in dict.fromkeys(each.published.place for each in found)
        ],
        "counts": tables.counts_table(found),
        "queue": openings.queue_table(
            results, (*paper.tables, *filter(None, (paper.splits, paper.ablation)))
        ),
    }


def _sections(paper: Paper, found: Sequence[Compared], results: Results) -> dict[str, Any]:
    """Return the same of a paper with other splits and ablation, and theirs."""
    figures, claims = paper.figures(), paper.claims()
    reference = [cell for suite in paper.tables for cell in studies.cells_of(results, suite)]
    return {
        **_tables(paper, found, results),
        "leads": studies.lead_table(reference),
        "gains": studies.gain_table(reference),
        "spreads": studies.spread_table(reference, figures, results),
        "split_accuracies": studies.split_accuracies(results, paper.tables[0], paper.splits),
        "split_leads": studies.split_leads(results, paper.splits, claims, figures),
        "switches": studies.ablation_table(results, paper.ablation, paper.tables[0]),
        "without_twins": studies.clean_table(reference),
    }


def _whole(paper: Paper, found: Sequence[Compared], results: Results) -> dict[str, Any]:
    """Return the sections of a paper whose runs are scored as a whole."""
    names = dict.fromkeys(each.published.place for each in found if not each.published.lacks)
    kind = _KINDS[paper.scored]
    return {
        "in_short": kind.in_short(found),
        "tables": [kind.table(found, name) for name in names],
        "changes": scores.changes_table(results, paper.ablation, found) if paper.ablation else "",
        "honest": scores.honest_table(results, found),
        "settings": [(suite, clusterings.settings_table(results, suite)) for suite in paper.others],
        "queue": openings.queue_table(results, paper.tables),
    }


def _table(paper: Paper, found: Sequence[Compared], name: str) -> dict[str, Any]:
    members = [each for each in found if each.published.place == name]
    noted = {each.published.cell: each for each in members if each.published.note}.values()
    return {
        "name": name,
        "suite": members[0].published.suite,
        "accuracies": tables.accuracy_table(members, paper.rules),
        "spreads": tables.spread_text(members, paper.rules),
        "gains": tables.gains_table(members, paper.rules),
        "notes": tables.notes([each for each in noted if not each.published.reading]),
    }
