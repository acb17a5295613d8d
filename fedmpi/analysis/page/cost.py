"""Sections of the page on what it cost: phases, rates, traffic; and who holds which data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.entries import Column, Entry, number, share, words
from fedmpi.analysis.page.axes import COLOURS
from fedmpi.analysis.page.collect import Digest, Holdings
from fedmpi.analysis.page.machine import Machine
from fedmpi.analysis.page.marks import Bars, bars
from fedmpi.analysis.page.overview import Line, lines, of_runs
from fedmpi.analysis.page.sections import Section, areas_legend
from fedmpi.analysis.page.settings import Cell, Setting
from fedmpi.analysis.page.tables import table
from fedmpi.analysis.summary import setting as setting_of
from fedmpi.store.schema import PHASES

_MOST_CLIENTS = 60


def phase_seconds(cell: Cell) -> dict[str, float]:
    """Return seconds by phase: mean over ranks, summed over rounds, mean over seeds."""
    runs = list(cell.runs.values())
    return {name: float(np.mean([run.phases.get(name, 0.0) for run in runs])) for name in PHASES}


def costliest(cell: Cell) -> tuple[str, float]:
    """Return the phase that takes most, and its share of all."""
    seconds = phase_seconds(cell)
    name = max(seconds, key=lambda phase: seconds[phase])
    total = sum(seconds.values())
    return name, seconds[name] / total if total else 0.0


def time(settings: Sequence[Setting], machine: Machine | None) -> Section:
    """Return where the time went, and how fast the work was done."""
    intro = Markup(
        "<p>Seconds that a rank spent in each phase: mean over ranks, summed over rounds, mean over "
        "seeds. The ranks wait where they are out of step; behind each bar stands the phase that cost the "
        "most.</p>"
    )
    parts = [intro, areas_legend("Phases", PHASES), Markup('<div class="grid">')]
    for each in settings:
        seconds = [phase_seconds(cell) for cell in each.cells]
        values = np.array([[row[name] for name in PHASES] for row in seconds])
        notes = ["{} {:.0%}".format(*costliest(cell)) for cell in each.cells]
        given = Bars([cell.label for cell in each.cells], PHASES, values, notes, "s")
        parts.append(bars(f"{each.heading}: time by phase", "seconds per rank", given))
    parts += [Markup("</div>"), _rates(settings, machine)]
    return Section("time", "Time: which phase costs the most", Markup("").join(parts))


def traffic(settings: Sequence[Setting]) -> Section:
    """Return the bytes of each collective."""
    runs = [run for each in settings for cell in each.cells for run in cell.runs.values()]
    names = [
        name for name in dict.fromkeys(name for run in runs for name in run.traffic) if name != "Ibarrier"
    ]
    intro = Markup(
        "<p>Payload that all ranks hand to or get from each collective, over all rounds, mean over seeds. "
        "It grows with the ranks; what a real federation would send, the same on any number of ranks, is "
        "<em>client MB</em> in the overview.</p>"
    )
    parts = [intro, areas_legend("Collectives", names), Markup('<div class="grid">')]
    for each in settings:
        rows = [
            [np.mean([run.traffic.get(name, 0.0) for run in cell.runs.values()]) for name in names]
            for cell in each.cells
        ]
        values = np.array(rows).reshape(len(each.cells), len(names))
        notes = [f"{total:,.1f} MB" for total in values.sum(axis=1)]
        given = Bars([cell.label for cell in each.cells], names, values, notes, "MB")
        parts.append(bars(f"{each.heading}: bytes by collective", "MB", given))
    return Section("traffic", "Bytes by collective", Markup("").join([*parts, Markup("</div>")]))


def _rates(settings: Sequence[Setting], machine: Machine | None) -> Markup:
    columns = [
        Column[Line]("dataset", lambda line: words(line[0].heading)),
        Column[Line]("algorithm", lambda line: words(line[1].label, "name")),
        Column[Line]("ranks", lambda line: words(_ranks(line[1]))),
        of_runs("s/round", "round_seconds_median", 3, "median over rounds, mean over seeds"),
        Column[Line]("costliest phase", lambda line: words(costliest(line[1])[0])),
        Column[Line]("its share %", lambda line: share(costliest(line[1])[1], 0)),
        Column[Line](
            "model GFLOP/s",
            lambda line: number(_rate(line[1], "model"), 1),
            "counted work of training and evaluation per second that a rank spent in them",
        ),
        Column[Line](
            "executed GFLOP/s",
            lambda line: number(_rate(line[1], "executed"), 1),
            "what the chosen kernels did, per second that a rank spent in them",
        ),
        of_runs("collective MB", "collective_megabytes", 1, "payload of all ranks' collectives"),
        of_runs("virtual s", "virtual_seconds", 1, "modelled time of a real federation"),
    ]
    if machine is not None:
        columns += _shares(machine)
    note = (
        '<p class="note">For shares of the roofline give the machine\'s rates: <code>fedmpi bench'
        " train --json &gt; machine.json</code>, then <code>--machine machine.json</code>.</p>"
    )
    shown = table("Rates and traffic", columns, lines(settings), "rates")
    return shown + Markup(note if machine is None else "")


def _shares(machine: Machine) -> list[Column[Line]]:
    def dense(line: Line) -> Entry:
        return share(machine.dense_share(list(line[1].runs.values()), _rate(line[1], "model")), 0)

    return [
        Column(
            "of dense rate %",
            dense,
            "model GFLOP/s over the machine's rate in products of the layers' shape; above 100 where work is "
            "skipped",
        ),
        Column(
            "of roofline %",
            lambda line: share(machine.roofline_share(list(line[1].runs.values())), 0),
            "least seconds that the machine's rates allow, over the measured ones",
        ),
    ]


def _ranks(cell: Cell) -> str:
    return ", ".join(
        map(str, sorted({count for run in cell.runs.values() for count in run.summary["ranks"]}))
    )


def _rate(cell: Cell, kind: str) -> float | None:
    found = [run.rates[kind] for run in cell.runs.values() if run.rates]
    return float(np.mean(found)) if found else None


def partitions(digests: Sequence[Digest]) -> Section:
    """Return the class shares of the clients, a picture per partition."""
    found: dict[str, tuple[Digest, Holdings]] = {}
    for run in digests:
        if run.holdings is not None:
            found.setdefault(run.holdings.mark, (run, run.holdings))
    most = max((holdings.counts.shape[1] for _, holdings in found.values()), default=0)
    parts = [
        Markup(
            "<p>Shares of each client's graphs by class. EMD: how far the clients' class shares are from "
            "those of all graphs, 0 (alike) to 2.</p>"
        ),
        areas_legend("Classes", [f"class {place}" for place in range(min(most, 2 * COLOURS))]),
        Markup('<div class="grid">'),
        *(_partition(run, holdings) for run, holdings in found.values()),
        Markup("</div>"),
    ]
    return Section("partition", "Who holds which classes", Markup("").join(parts))


def _partition(run: Digest, holdings: Holdings) -> Markup:
    shown = min(len(run.clients), _MOST_CLIENTS)
    counts = holdings.counts[:shown].astype(np.float64)
    parts = [f"class {place}" for place in range(counts.shape[1])]
    rows = [
        client if dataset in client or len(set(holdings.datasets)) == 1 else f"{client} {dataset}"
        for client, dataset in zip(run.clients[:shown], holdings.datasets, strict=False)
    ]
    totals = counts.sum(axis=1, keepdims=True)
    notes = [f"{count:,.0f} graphs" for count in totals[:, 0]]
    shares = 100 * counts / np.maximum(totals, 1)
    more = f", the first {shown} of {len(run.clients)} clients" if shown < len(run.clients) else ""
    named = f"{setting_of(run.config, 'dataset')}, {setting_of(run.config, 'partition')}"
    title = f"{named}: EMD {holdings.emd:.3f}{more}"
    return bars(title, "share of the client's graphs (%)", Bars(rows, parts, shares, notes, "%"))
