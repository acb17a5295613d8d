"""Puts the page together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import fedmpi
from fedmpi.analysis.page import clients, cost, details
from fedmpi.analysis.page.cells import Setting, lines
from fedmpi.analysis.page.collect import Digest, digest
from fedmpi.analysis.page.curves import curves
from fedmpi.analysis.page.overview import overview
from fedmpi.analysis.page.results import results
from fedmpi.analysis.page.sections import Section, cells_legend, file
from fedmpi.analysis.page.settings import settings
from fedmpi.store.reader import Run
from fedmpi.tables.html import template

_LARGEST = 3_000_000
"""Bytes of a page: pictures of single runs have what the other sections leave, the first run's always."""


@dataclass
class Page:
    """Collects runs one by one, then writes the page about them.

    Attributes
    ----------
    target : float or None
        Value of the headline, of the to-target figures.
    reference : str or None
        Algorithm that leads are over.
    command : str
        Shows the same on a terminal.
    across : sequence of str
        Settings whose values are compared like algorithms.
    digests, details : list
        What the page shows of each run.
    """

    target: float | None = None
    reference: str | None = None
    command: str = "fedmpi report RUNS"
    across: Sequence[str] = ()
    digests: list[Digest] = field(default_factory=list)
    details: list[details.Detail] = field(default_factory=list)

    def add(self, runs: Iterable[Run]) -> None:
        """Take what the page shows of each run."""
        for run in runs:
            self.digests.append(digest(run, self.target))
            self.details.append(details.detail(run))

    def settings(self, left_out: Sequence[str]) -> tuple[list[Setting], list[str]]:
        """Return what can be averaged, and a line for each thing that is in no average; `left_out` first."""
        warnings = list(left_out)
        found = settings(self.digests, warnings, self.reference, self.across)
        for run in (run for run in self.digests if run.status != "complete"):
            reason = f": {run.reason}" if run.reason else ""
            warnings.append(f"{run.folder}: {run.status}, so in no average{reason}")
        return found, warnings

    def html(self, title: str, left_out: Sequence[str]) -> str:
        """Return the page.

        Parameters
        ----------
        title : str
        left_out : sequence of str
            What could not be read, a line each.
        """
        found, warnings = self.settings(left_out)
        versions = sorted({str(run.config["numerics_version"]) for run in self.digests})
        sections, drawn = self._averages(found), lines(found)
        last = [details.all_runs(self.digests), details.provenance(self.digests)] if self.digests else []

        def page(*single: Section) -> str:
            return template(file("page.html.j2")).render(
                title=title,
                facts=_facts(self.digests, versions),
                mixed=len(versions) > 1,
                warnings=warnings,
                runs={
                    run.name: (cell.label, each.heading) for each, cell in drawn for run in cell.runs.values()
                },
                legend=cells_legend([cell for _, cell in drawn]),
                sections=[*sections, *single, *last],
                style=file("style.css"),
                scripts=[file("page.js"), file("curves.js")],
                command=self.command,
                version=fedmpi.__version__,
            )

        if not self.details:
            return page()
        least = page(details.one_by_one(self.details, 1))
        count = details.fitting(self.details, _LARGEST - len(least.encode()))
        return page(details.one_by_one(self.details, count))

    def _averages(self, found: Sequence[Setting]) -> list[Section]:
        sections: list[Section] = []
        if found:
            by_client = [each for each in found if each.metric.scope == "client"]
            sections += [results(found), cost.tradeoff(found, self.target), overview(found)]
            if any(len(each.cells) > 1 for each in by_client):
                sections.append(clients.by_client(by_client))
            sections += [curves(found), *([clients.gains(by_client)] if by_client else [])]
            sections += [cost.time(found), cost.traffic(found)]
        if any(run.holdings for run in self.digests):
            sections.append(cost.partitions(self.digests))
        return sections


def _facts(digests: Sequence[Digest], versions: Sequence[str]) -> str:
    complete = sum(run.status == "complete" for run in digests)
    seeds = len({run.config.get("seed") for run in digests})
    counted = f"{len(digests)} run{'s' * (len(digests) != 1)}, {complete} complete"
    return f"{counted}; {seeds} seed{'s' * (seeds != 1)}; numerics version {', '.join(versions) or '-'}"
