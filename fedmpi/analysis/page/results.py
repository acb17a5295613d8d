"""The top of the page: algorithms by datasets, leads over the reference, and both in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.entries import score
from fedmpi.analysis.page.cells import Cell, Setting, by_metric, direction
from fedmpi.analysis.page.findings import findings
from fedmpi.analysis.page.leads import forest
from fedmpi.analysis.page.overview import ahead
from fedmpi.analysis.page.sections import Section, grid, table
from fedmpi.analysis.page.templates import part
from fedmpi.judging.estimates import LEVEL
from fedmpi.judging.ranking import ranking, ranks
from fedmpi.tables.table import NONE, Column, Entry, number, words


def results(settings: Sequence[Setting]) -> Section:
    """Return what came out: a matrix for each headline, leads with intervals, sentences."""
    parts = []
    for place, alike in enumerate(by_metric(settings)):
        metric = alike[0].metric
        caption = f"{metric.label(unit=True)} in the last round, {direction(metric)}"
        drawn = table(caption, *matrix(alike), f"matrix-{place}", "")
        drawn += part("ranking")(_told_apart(alike))
        plots = [forest(each) for each in alike if any(lead.gap.count for _, lead in each.leads)]
        if len(alike) == 1:
            parts.append(grid([Markup("<div>{}</div>").format(drawn), *plots]))
        else:
            parts += [drawn, grid(plots)]
    parts += [part("results")(any(each.leads for each in settings)), findings(settings)]
    return Section("results", "Results", Markup("").join(parts))


def matrix(settings: Sequence[Setting]) -> tuple[list[Column[str]], list[str]]:
    """Return a column per dataset, and the rows: the labels of algorithms; of settings with one headline."""
    return _columns(settings), _labels(settings)


def _labels(settings: Sequence[Setting]) -> list[str]:
    whole_first = sorted(settings, key=lambda each: -len(each.cells))
    return list(dict.fromkeys(cell.label for each in whole_first for cell in each.cells))


def _columns(settings: Sequence[Setting]) -> list[Column[str]]:
    """Return a column per dataset over rows of algorithms, and the average rank where there are several."""
    rank = Column[str]("average rank", lambda label: number(_average_rank(settings, label), 2), _RANK)
    names = Column[str]("algorithm", lambda label: words(label, "name"))
    whole = _whole(settings)
    return [names, *map(_of_setting, settings), *([rank] if len(whole) > 1 else [])]


_RANK = "1: best; mean over the datasets that have every algorithm; ties as printed share their ranks"


def _of_setting(setting: Setting) -> Column[str]:
    cells = {cell.label: cell for cell in setting.cells}
    most = max(len(cell.runs) for cell in setting.cells)
    best = {cell.label for cell in ahead(setting)} if len(cells) > 1 else set()

    def entry(label: str) -> Entry:
        if label not in cells:
            return words(NONE)
        lead = setting.lead(cells[label])
        verdict = lead.verdict if lead is not None and lead.verdict in ("better", "worse") else ""
        kinds = " ".join(filter(None, ("best" if label in best else "", verdict)))
        shown = score(setting.metric, cells[label].score())
        seeds = f" ({len(cells[label].runs)} of {most} seeds)" if len(cells[label].runs) < most else ""
        return replace(shown, text=shown.text + seeds, kind=kinds)

    return Column(setting.heading, entry)


def _whole(settings: Sequence[Setting]) -> list[Setting]:
    """Return the datasets that have every algorithm, of several."""
    return [each for each in settings if len(each.cells) == len(_labels(settings)) > 1]


def _average_rank(settings: Sequence[Setting], label: str) -> float:
    return float(np.mean([_ranks(each.cells)[label] for each in _whole(settings)]))


def _told_apart(settings: Sequence[Setting]) -> str:
    """Say which average ranks are told apart, where there are enough of them."""
    whole, labels = _whole(settings), _labels(settings)
    if len(whole) < 2 or len(labels) < 3:
        return ""
    if len({each.cells[0].dataset for each in whole}) < len(whole):
        return "Average ranks are not tested: settings of one dataset are no independent datasets."
    found = ranking(np.array([[_ranks(each.cells)[label] for label in labels] for each in whole]))
    return (
        f"Average ranks that differ by less than {found.critical_difference:.2f} are not told apart "
        f"(Nemenyi's critical difference at {LEVEL:.0%}, {found.datasets} datasets, {len(labels)} "
        f"algorithms). That all algorithms are alike has p = {found.p:.2g} (Friedman's test)."
    )


def _ranks(cells: Sequence[Cell]) -> dict[str, float]:
    """Return the rank of each cell by label, 1 for the best; ties as printed share theirs."""
    metric = cells[0].metric
    found = ranks([metric.sign * float(metric.shown(cell.score().mean)) for cell in cells])
    return dict(zip((cell.label for cell in cells), found.tolist(), strict=True))
