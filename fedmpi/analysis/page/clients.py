"""Sections of the page on single clients: who won on which, and what each gains over training alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.page.cells import Cell, Setting
from fedmpi.analysis.page.collect import Float
from fedmpi.analysis.page.marks import Violin, violins
from fedmpi.analysis.page.overview import gain
from fedmpi.analysis.page.sections import CSV, Section, cells_legend, grid, leaders, part, table
from fedmpi.tables.table import listed, number, words

_MOST_ROWS = 200
"""Clients of a table; there are charts of all."""


def _client_means(setting: Setting) -> Float:
    """Return each cell's headline by client, as people read it, last round, mean over seeds [cells, n]."""
    return setting.metric.scale * np.array([cell.values().mean(axis=0) for cell in setting.cells])


def winners(setting: Setting) -> list[list[int]]:
    """Return of each client the cells that are best on it: several where they tie as printed."""
    means, places = setting.metric.sign * _client_means(setting), range(len(setting.cells))
    return [leaders(places, column.__getitem__, setting.metric.digits - 1) for column in means.T]


def by_client(settings: Sequence[Setting]) -> Section:
    """Return who is best on which client, a table per dataset."""
    drawn = [_client_table(each, f"clients-{n}") for n, each in enumerate(settings) if len(each.cells) > 1]
    content = Markup("").join([part("clients")(), *drawn])
    return Section("clients", "Which algorithm won on which client", content)


def _client_table(setting: Setting, identifier: str) -> Markup:
    """Return a row per client; values have a digit less than means, since it has few test examples."""
    means, best, digits = _client_means(setting), winners(setting), setting.metric.digits - 1
    labels = [cell.label for cell in setting.cells]
    rows: list[list[object]] = []
    for client, name in enumerate(setting.clients[:_MOST_ROWS]):
        values = enumerate(means[:, client].tolist())
        entries = [number(value, digits, "best" * (place in best[client])) for place, value in values]
        rows.append([name, *entries, words(", ".join(labels[place] for place in best[client]), "name")])
    more = len(setting.clients) - _MOST_ROWS
    left_out = f"; {more} more clients are not listed" if more > 0 else ""
    caption = f"{setting.heading}: {setting.metric.heading} by client{left_out}"
    heading = Markup("<h3>{}</h3><p>Best: {}.</p>").format(setting.heading, wins(setting))
    return heading + table(caption, listed(["client", *labels, "best"]), rows, identifier, CSV)


def wins(setting: Setting) -> str:
    """Say on how many clients each cell is best, the most first, and how many of these are ties."""
    best = winners(setting)
    counts = [(cell.label, sum(place in each for each in best)) for place, cell in enumerate(setting.cells)]
    won = sorted((pair for pair in counts if pair[1]), key=lambda pair: -pair[1])
    text = f"{', '.join(f'{label} on {count}' for label, count in won)} of {len(best)} clients"
    ties = sum(len(each) > 1 for each in best)
    return f"{text}; on {ties} several tie, and each of them counts" if ties else text


def gains(settings: Sequence[Setting]) -> Section:
    """Return violins of the clients' gains over self-train."""
    charts: list[Markup] = []
    drawn: list[Cell] = []
    for each in settings:
        found = [(cell, *known) for cell in each.cells if (known := gain(each, cell)) is not None]
        groups = [_violin(each, cell, values) for cell, values, _ in found if not np.isnan(values).all()]
        if groups:
            over = ", ".join(dict.fromkeys(reference.label for *_, reference in found))
            unit = f"gain ({'points' if each.metric.percent else each.metric.title})"
            charts.append(violins(f"{each.heading}: gain over {over}", unit, groups))
            drawn += [cell for cell, *_ in found]
    content = part("gains")() + cells_legend(drawn) + grid(charts) if charts else part("no_gains")()
    return Section("gains", "Gain over self-train, client by client", content)


def _violin(setting: Setting, cell: Cell, values: Float) -> Violin:
    kept = ~np.isnan(values)
    return Violin(cell.label, cell.colour, list(compress(setting.clients, kept)), values[kept])
