"""The page's section on runs that are judged by one score over all test graphs: ROC-AUC or RMSE."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from fedmpi.analysis.estimates import Estimate, estimate
from fedmpi.analysis.page.charts import Axes, Line, lines
from fedmpi.analysis.page.sections import COSTS, Section, cells_legend, costs, leaders, with_spread
from fedmpi.analysis.page.settings import Cell, Setting
from fedmpi.analysis.page.tables import Cell as Entry
from fedmpi.analysis.page.tables import Heading, number, table, with_interval, words

_HEADINGS = (
    Heading("dataset"),
    Heading("algorithm"),
    Heading("score", "over the test graphs of all clients together, each under its client's new model"),
    Heading("last round", "mean over seeds ± 95 % interval"),
    Heading("best by validation", "test score in the round of the best validation score"),
    Heading("as published", "the best test score of any round: chosen on test data"),
    Heading("constant", "of a prediction that is the same for every graph"),
    *COSTS,
)

LAST = "test_score"


def direction(higher: bool) -> str:
    """Return in words which way a score is better."""
    return "higher is better" if higher else "lower is better"


def over_seeds(cell: Cell, figure: str = LAST) -> Estimate:
    """Return the mean over seeds of a figure of the runs' summaries."""
    return estimate(np.array([run.summary[figure] for run in cell.runs.values()]))


def ahead(cells: Sequence[Cell], higher: bool | None) -> list[Cell]:
    """Return the cells of the best score in the last round: several where they tie."""
    sign = 1.0 if higher else -1.0
    return leaders(cells, lambda cell: sign * over_seeds(cell).mean, 4)


def scores(settings: Sequence[Setting]) -> Section:
    """Return the table of all cells, and the scores by round."""
    rows = [_row(setting, cell) for setting in settings for cell in setting.cells]
    note = Markup(
        '<p class="note">★ the best of a dataset; of those that tie as printed, each. Scores are over all '
        "test graphs together, so runs whose "
        "clients differ, as centralised training's, stand beside each other. Left out: these runs are in no "
        "table by client and in no gain over self-train.</p>"
    )
    parts = [table("Every dataset and algorithm by score", _HEADINGS, rows, "scores-cells"), note]
    parts.append(cells_legend([cell for each in settings for cell in each.cells]))
    for each in settings:
        parts.append(Markup(f'<h3>{escape(each.heading)}</h3><div class="grid wide">'))
        for part, title in (("val", "Validation"), ("test", "Test")):
            name = f"{title} {each.score}, {direction(each.higher)}"
            axes = Axes(name, each.heading, str(each.score), log=False, factor=1.0)
            parts.append(lines(axes, [_line(cell, part) for cell in each.cells]))
        parts.append(Markup("</div>"))
    return Section("scores", "Runs by ROC-AUC or RMSE", Markup("").join(parts))


def _row(setting: Setting, cell: Cell) -> list[Entry]:
    leads = any(cell is each for each in ahead(setting.cells, setting.higher))
    best = "best" if len(setting.cells) > 1 and leads else ""
    return [
        words(setting.heading),
        words(cell.label, "name"),
        words(f"{setting.score}, {direction(setting.higher)}"),
        _shown(over_seeds(cell), best),
        _shown(over_seeds(cell, "test_score_best_by_validation")),
        _shown(over_seeds(cell, "test_score_as_published")),
        number(cell.mean("test_score_constant"), 4),
        *costs(cell),
    ]


def _shown(found: Estimate, kind: str = "") -> Entry:
    return with_interval(found.mean, found.half, 4, kind)


def _line(cell: Cell, part: str) -> Line:
    found = [run.headline for run in cell.runs.values() if run.headline is not None]
    return with_spread(cell, [each.val if part == "val" else each.test for each in found])
