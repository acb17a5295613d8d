"""The leaderboard's pages (Markdown) and their pictures (SVG); text is in templates."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from fedmpi.analysis import names
from fedmpi.analysis.leaderboard import budget, findings, tables
from fedmpi.analysis.leaderboard.board import Board
from fedmpi.analysis.leaderboard.costs import SECONDS, cost
from fedmpi.analysis.leaderboard.rows import ALONE, REFERENCE
from fedmpi.analysis.leaderboard.track import SEEDS
from fedmpi.judging.equivalence import FEWEST_DATASETS, ROPE, SURE
from fedmpi.metrics.metric import Metric

EARLIER_PAGE = "leaderboard-earlier.md"
"""File name of the page of the earlier tracks."""

COLOURS = {"better": "#0072B2", "worse": "#D55E00", "equivalent": "#009E73", "undecided": "#777777"}
"""Of decisions."""

_NAMED = 5
"""So many of the best methods are named in the picture of expected scores."""


def pages(boards: Sequence[Board], name: str) -> dict[str, str]:
    """Return the page and its pictures by their paths beside it; they depend on the rows only.

    Parameters
    ----------
    boards : sequence of Board
    name : str
        File name of the page.
    """
    own = [each.track.argument for each in boards if not each.track.bundled]
    budgets = {_place(each, "-budget"): picture for each in boards if (picture := _budget(each))}
    limits = {"fewest": FEWEST_DATASETS, "sure": SURE}
    page = _rendered("page.md", boards=boards, own=own, earlier=EARLIER_PAGE, pictures=budgets, **limits)
    leads = {_place(each): _leads(each) for each in boards if each.comparisons}
    return {name: page, **leads, **budgets}


def earlier_pages(boards: Sequence[Board], today: str) -> dict[str, str]:
    """Return the page of the earlier tracks and its pictures, likewise; `today` is the other page's name."""
    pictures = {_place(each): _rendered("ranks.svg", board=each) for each in boards if each.ranking}
    return {EARLIER_PAGE: _rendered("earlier.md", boards=boards, today=today), **pictures}


def _place(found: Board, what: str = "") -> str:
    return f"images/leaderboard-{found.track.name}{what}.svg"


def _leads(found: Board) -> str:
    spent = {method: cost(found, method).to_target[SECONDS] for method in found.comparisons}
    return _rendered("leads.svg", board=found, spent=spent, colours=COLOURS, rope=ROPE, sure=SURE)


def _budget(found: Board) -> str:
    """Return the picture of expected scores; nothing where there are no two numbers of candidates."""
    counts, curves = budget.curves(found)
    named = [each for place, each in enumerate(curves) if place < _NAMED or each in (REFERENCE, ALONE)]
    if len(counts) < 2 or not named:
        return ""
    return _rendered(
        "budget.svg", board=found, counts=counts, curves=curves, named=named, colours=names.COLOURS
    )


def _rendered(name: str, **values: Any) -> str:
    folder = files("fedmpi.analysis.leaderboard")
    environment = Environment(
        loader=FunctionLoader(lambda each: folder.joinpath(each).read_text(encoding="utf-8")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=name.endswith(".svg"),
    )
    environment.globals.update(
        tables=tables,
        findings=findings,
        name_of=names.algorithm_name,
        constant_of=constant_of,
        seeds=len(SEEDS),
    )
    return environment.get_template(f"{name}.j2").render(**values)


def constant_of(metric: Metric) -> str:
    """Return what a constant prediction is for a metric."""
    if metric.scope == "client":
        return "each client's most frequent class of training, for all its test examples"
    return "one prediction for all test examples"
