"""Sections of the page on what was learned: overview, who won where, curves, gains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from fedmpi.analysis.estimates import Estimate, estimate
from fedmpi.analysis.page.axes import thinned
from fedmpi.analysis.page.charts import Axes, lines
from fedmpi.analysis.page.collect import ALONE, BEST, LAST, PUBLISHED, Float
from fedmpi.analysis.page.marks import Violin, violins
from fedmpi.analysis.page.sections import COSTS, Section, cells_legend, costs, leaders, with_spread
from fedmpi.analysis.page.settings import Cell, Setting
from fedmpi.analysis.page.tables import Cell as Entry
from fedmpi.analysis.page.tables import Heading, number, percent, table, with_interval, words

_DIGITS = 1
"""Of a client's accuracy in percent: its test graphs are few."""
_MOST_ROWS = 200
"""Clients of a table; there are charts of all."""

_CURVES = {
    "test_accuracy": ("Test accuracy", "%", 100.0),
    "val_accuracy": ("Validation accuracy", "%", 100.0),
    "train_loss": ("Training loss", "nat", 1.0),
    "test_loss": ("Test loss", "nat", 1.0),
}


def mean_over_seeds(cell: Cell, rule: str) -> Estimate:
    """Return the mean over seeds of the average over clients of the test accuracies by a rule."""
    values = cell.accuracy(rule)
    counts = (~np.isnan(values)).sum(axis=1)
    return estimate(np.where(counts > 0, np.nansum(values, axis=1) / np.maximum(counts, 1), np.nan))


def overview(settings: Sequence[Setting]) -> Section:
    """Return the table of all cells: a line per dataset and algorithm."""
    headings = [
        Heading("dataset"),
        Heading("algorithm"),
        Heading("test acc %, last round", "mean over clients and seeds ± 95 % interval over seeds"),
        Heading("best by validation", "test accuracy at each client's best round by validation"),
        Heading("as published", "a maximum over test accuracies at splits: chosen on test data"),
        Heading(
            "without twins", "last round, over test graphs that have no isomorphic twin in a training set"
        ),
        Heading("worst client", "lowest accuracy of a client, mean over seeds"),
        Heading("gain over self-train", "points, mean over clients, over the seeds that both have"),
        Heading("clusters", "clusters at the end, mean over seeds"),
        *COSTS,
    ]
    rows = [_overview_row(setting, cell) for setting in settings for cell in setting.cells]
    note = Markup('<p class="note">★ the best of a dataset; of those that tie as printed, each.</p>')
    return Section(
        "overview", "Overview", table("Every dataset and algorithm", headings, rows, "cells") + note
    )


def _overview_row(setting: Setting, cell: Cell) -> list[Entry]:
    found = {rule: mean_over_seeds(cell, rule) for rule in (LAST, BEST, PUBLISHED)}
    kinds = {rule: "best" if _leads(setting, cell, rule) else "" for rule in (LAST, BEST)}
    reference = setting.reference(cell)
    gain = _gain(cell, reference)[0] if reference is not None and cell.algorithm != ALONE else None
    return [
        words(setting.heading),
        words(cell.label, "name"),
        _percent(found[LAST], kinds[LAST]),
        _percent(found[BEST], kinds[BEST]),
        _percent(found[PUBLISHED]),
        percent(cell.mean("test_accuracy_without_twins")),
        percent(cell.mean("worst_client_accuracy")),
        number(None if gain is None else float(np.nanmean(gain))),
        number(1 + cell.mean("splits") if cell.algorithm != ALONE else None, 1),
        *costs(cell),
    ]


def _percent(found: Estimate, kind: str = "") -> Entry:
    return with_interval(100 * found.mean, 100 * found.half, 2, kind)


def _leads(setting: Setting, cell: Cell, rule: str) -> bool:
    return len(setting.cells) > 1 and any(cell is each for each in ahead(setting.cells, rule))


def ahead(cells: Sequence[Cell], rule: str = LAST) -> list[Cell]:
    """Return the cells of the highest mean accuracy: several where they tie."""
    return leaders(cells, lambda cell: 100 * mean_over_seeds(cell, rule).mean, 2)


def _client_means(setting: Setting) -> Float:
    """Return each cell's accuracy by client, last round, mean over seeds [cells, n]."""
    return np.array([cell.accuracy(LAST).mean(axis=0) for cell in setting.cells])


def winners(setting: Setting) -> list[list[int]]:
    """Return of each client the cells that are best on it: several where they tie as printed."""
    means = _client_means(setting)
    places = range(len(setting.cells))
    return [leaders(places, (100 * column).__getitem__, _DIGITS) for column in means.T]


def by_client(settings: Sequence[Setting]) -> Section:
    """Return who is best on which client, a table per dataset."""
    parts = [
        Markup(
            "<p>Test accuracy in the last round, percent, mean over seeds. ★ marks the best of a client; "
            "of those that tie as printed, each. A client has few test graphs, so small gaps mean little.</p>"
        )
    ]
    for place, each in enumerate(settings):
        if len(each.cells) > 1:
            parts.append(_client_table(each, f"clients-{place}"))
    return Section("clients", "Which algorithm won on which client", Markup("").join(parts))


def _client_table(setting: Setting, identifier: str) -> Markup:
    means, best = _client_means(setting), winners(setting)
    headings = ["client", *(cell.label for cell in setting.cells), "best"]
    rows = []
    for client, name in enumerate(setting.clients[:_MOST_ROWS]):
        kinds = ["best" if place in best[client] else "" for place in range(len(setting.cells))]
        cells = [percent(means[place, client], _DIGITS, kinds[place]) for place in range(len(kinds))]
        labels = ", ".join(setting.cells[place].label for place in best[client])
        rows.append([words(name), *cells, words(labels, "name")])
    more = len(setting.clients) - _MOST_ROWS
    left_out = f"; {more} more clients are not listed" if more > 0 else ""
    caption = f"{setting.heading}: accuracy by client{left_out}"
    return Markup(f"<h3>{escape(setting.heading)}</h3><p>Best: {escape(wins(setting))}.</p>") + (
        table(caption, headings, rows, identifier)
    )


def wins(setting: Setting) -> str:
    """Say on how many clients each cell is best, the most first, and how many of these are ties."""
    best = winners(setting)
    counts = [(cell.label, sum(place in each for each in best)) for place, cell in enumerate(setting.cells)]
    won = sorted((pair for pair in counts if pair[1]), key=lambda pair: -pair[1])
    text = f"{', '.join(f'{label} on {count}' for label, count in won)} of {len(best)} clients"
    ties = sum(len(each) > 1 for each in best)
    return f"{text}; on {ties} several tie, and each of them counts" if ties else text


def curves(settings: Sequence[Setting]) -> Section:
    """Return accuracy and loss by round, with the spread over seeds."""
    parts = [
        Markup(
            "<p>Mean over clients, then over seeds; the band is one standard deviation over seeds. The "
            "new models of each round, but the training loss, which is a running mean while the model "
            "changes. Losses are on a logarithmic axis.</p>"
        ),
        cells_legend([cell for each in settings for cell in each.cells]),
    ]
    for place, each in enumerate(settings):
        parts.append(Markup(f'<h3>{escape(each.heading)}</h3><div class="grid wide">'))
        for field, (title, unit, factor) in _CURVES.items():
            if not _has(each, field):
                continue
            drawn = [
                with_spread(cell, [run.curves[field] for run in cell.runs.values()]) for cell in each.cells
            ]
            axes = Axes(title, each.heading, f"{title.lower()} ({unit})", log=unit == "nat", factor=factor)
            parts.append(lines(axes, drawn))
        parts.append(Markup("</div>"))
        if _has(each, "test_accuracy"):
            parts.append(_curve_table(each, f"curves-{place}"))
    return Section("curves", "Accuracy and loss by round", Markup("").join(parts))


def _has(each: Setting, field: str) -> bool:
    """Return whether there is anything to draw of a curve; losses below 0 have no logarithm."""
    runs = [run for cell in each.cells for run in cell.runs.values()]
    least = 0.0 if _CURVES[field][1] == "nat" else -np.inf
    return all(field in run.curves for run in runs) and any((run.curves[field] > least).any() for run in runs)


def _curve_table(each: Setting, identifier: str) -> Markup:
    """Return the test accuracy at about ten rounds, for those who do not see the curves."""
    longest = max(int(cell.config["rounds"]) for cell in each.cells)
    rows = []
    for number_ in thinned(longest, 11).tolist():
        values = [
            [run.curves["test_accuracy"][number_ : number_ + 1] for run in cell.runs.values()]
            for cell in each.cells
        ]
        cells = [percent(float(np.mean(found)) if np.size(found) else None, 1) for found in values]
        rows.append([Entry(str(number_ + 1), number_ + 1), *cells])
    caption = f"{each.heading}: test accuracy (%), mean over clients and seeds"
    inside = table(caption, ["round", *(cell.label for cell in each.cells)], rows, identifier)
    return Markup("<details><summary>Test accuracy in numbers</summary>") + inside + Markup("</details>")


def _gain(cell: Cell, reference: Cell) -> tuple[Float, list[int]]:
    """Return each client's mean gain in points over the seeds that both have, and those seeds."""
    seeds = [seed for seed in cell.runs if seed in reference.runs]
    if not seeds:
        return np.full(len(next(iter(cell.runs.values())).clients), np.nan), seeds
    return 100 * (
        cell.accuracy(LAST, seeds).mean(axis=0) - reference.accuracy(LAST, seeds).mean(axis=0)
    ), seeds


def gains(settings: Sequence[Setting]) -> Section:
    """Return violins of the clients' gains over self-train."""
    parts: list[Markup] = []
    drawn: list[Cell] = []
    for each in settings:
        groups, references = [], []
        for cell in each.cells:
            reference = each.reference(cell)
            if cell.algorithm == ALONE or reference is None:
                continue
            values, seeds = _gain(cell, reference)
            kept = ~np.isnan(values)
            if seeds and kept.any():
                names = [name for name, keep in zip(each.clients, kept, strict=True) if keep]
                groups.append(Violin(cell.label, cell.label, cell.colour, names, values[kept]))
                references.append(reference.label)
                drawn.append(cell)
        if groups:
            over = ", ".join(dict.fromkeys(references))
            parts.append(violins(f"{each.heading}: gain over {over}", "gain (points)", groups))
    if not parts:
        content = Markup("<p>No run has a self-train of the same data, settings and seeds beside it.</p>")
        return Section("gains", "Gain over self-train, client by client", content)
    intro = Markup(
        "<p>A client's test accuracy in the last round minus that of its self-train, both means over the "
        "seeds that both have, in points. Dots are clients (hover for names), bars means; above 0 the "
        "federation helps.</p>"
    )
    content = (
        intro + cells_legend(drawn) + Markup('<div class="grid">') + Markup("").join(parts) + Markup("</div>")
    )
    return Section("gains", "Gain over self-train, client by client", content)
