"""Sections of the page on what it cost: phases, rates, traffic; and who holds which data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.page.axes import COLOURS
from fedmpi.analysis.page.cells import Cell, Line, Setting, lines
from fedmpi.analysis.page.collect import Digest, Float, Holdings
from fedmpi.analysis.page.machine import Machine
from fedmpi.analysis.page.marks import Bars, bars
from fedmpi.analysis.page.overview import NAMES, of_runs, spent
from fedmpi.analysis.page.sections import Section, areas_legend, grid, table
from fedmpi.analysis.page.templates import part
from fedmpi.analysis.page.units import JOULES, MEGABYTES, PERCENT, SECONDS, human
from fedmpi.analysis.summary import setting as setting_of
from fedmpi.store.schema import PHASES, SECURE_STEPS
from fedmpi.tables.table import Column, Entry, share, words

_MOST_CLIENTS = 60


def costliest(cell: Cell) -> tuple[str, float]:
    """Return the phase that takes most, and its share of all."""
    seconds = _means(cell, "phases", PHASES)
    place, total = int(np.argmax(seconds)), float(seconds.sum())
    return PHASES[place], float(seconds[place]) / total if total else 0.0


def _means(cell: Cell, kind: str, names: Sequence[str]) -> Float:
    """Return the means over seeds of a run's `phases`, `secure`, `joules` or `traffic` by name [names]."""
    found = [[getattr(run, kind).get(name, 0.0) for name in names] for run in cell.runs.values()]
    means: Float = np.array(found).reshape(len(found), len(names)).mean(axis=0)
    return means


def time(settings: Sequence[Setting], machine: Machine | None) -> Section:
    """Return where the time went, and how fast the work was done."""
    charts = []
    for each in settings:
        notes = ["{} {:.0%}".format(*costliest(cell)) for cell in each.cells]
        values = np.array([_means(cell, "phases", PHASES) for cell in each.cells])
        given = Bars([cell.label for cell in each.cells], PHASES, values, notes, SECONDS)
        charts.append(bars(f"{each.heading}: time by phase", "time of a rank", given))
    content = part("time")() + areas_legend("Phases", PHASES) + grid(charts) + _secure(settings)
    content += _energy(settings)
    content += _rates(settings, machine)
    return Section("time", "Time: which phase costs the most", content)


def _secure(settings: Sequence[Setting]) -> Markup:
    """Return the steps of secure sums, a picture per setting that has some."""
    steps, charts = tuple(SECURE_STEPS), []
    for each in settings:
        cells = [cell for cell in each.cells if any(run.secure for run in cell.runs.values())]
        if cells:
            values = np.array([_means(cell, "secure", steps) for cell in cells])
            notes = [human(total, SECONDS) for total in values.sum(axis=1)]
            given = Bars([cell.label for cell in cells], steps, values, notes, SECONDS)
            charts.append(bars(f"{each.heading}: secure sums by step", "time of a rank", given))
    return areas_legend("Steps of a secure sum", steps) + grid(charts) if charts else Markup("")


def _energy(settings: Sequence[Setting]) -> Markup:
    """Return the energy of each phase, a picture per setting whose runs have counted some."""
    charts = []
    for each in settings:
        cells = [cell for cell in each.cells if any(run.joules for run in cell.runs.values())]
        if cells:
            values = np.nan_to_num(np.array([_means(cell, "joules", PHASES) for cell in cells]))
            notes = [human(cell.mean("joules"), JOULES) for cell in cells]
            given = Bars([cell.label for cell in cells], PHASES, values, notes, JOULES)
            charts.append(
                bars(f"{each.heading}: energy by phase", "processors and memory of all nodes", given)
            )
    return part("energy")() + areas_legend("Phases", PHASES) + grid(charts) if charts else Markup("")


def traffic(settings: Sequence[Setting]) -> Section:
    """Return the bytes of each collective."""
    found = dict.fromkeys(name for run in _runs(settings) for name in run.traffic)
    names = [name for name in found if name != "Ibarrier"]
    charts = []
    for each in settings:
        values = np.array([_means(cell, "traffic", names) for cell in each.cells])
        notes = [human(total, MEGABYTES) for total in values.sum(axis=1)]
        given = Bars([cell.label for cell in each.cells], names, values, notes, MEGABYTES)
        charts.append(bars(f"{each.heading}: bytes by collective", "payload of all ranks", given))
    content = part("traffic")() + areas_legend("Collectives", names) + grid(charts)
    return Section("traffic", "Bytes by collective", content)


def _rates(settings: Sequence[Setting], machine: Machine | None) -> Markup:
    columns = [
        *NAMES,
        Column[Line]("ranks", lambda line: words(_ranks(line[1]))),
        Column[Line]("costliest phase", lambda line: words(costliest(line[1])[0])),
        Column[Line]("its share %", lambda line: share(costliest(line[1])[1], 0)),
        of_runs(
            "model GFLOP/s", "model_rate", 1,
            "counted work of training and evaluation per second that a rank spent in them",
        ),
        of_runs(
            "executed GFLOP/s", "executed_rate", 1,
            "what the chosen kernels did, per second that a rank spent in them",
        ),
        spent("traffic of ranks", "collective_megabytes", MEGABYTES, "payload of all ranks' collectives"),
        spent("virtual time", "virtual_seconds", SECONDS, "modelled time of a real federation"),
        *([_ENERGY] if any("joules" in run.summary for run in _runs(settings)) else []),
    ]  # fmt: skip
    if machine is not None:
        columns += _shares(machine)
    shown = table("Rates and traffic", columns, lines(settings), "rates")
    return shown + part("no_rates")() if machine is None else shown


_ENERGY = spent("energy", "joules", JOULES, "processors, memory and GPUs of all nodes, by their counters")


def _runs(settings: Sequence[Setting]) -> list[Digest]:
    return [run for _, cell in lines(settings) for run in cell.runs.values()]


def _shares(machine: Machine) -> list[Column[Line]]:
    def dense(line: Line) -> Entry:
        return share(machine.dense_share(list(line[1].runs.values()), line[1].mean("model_rate")), 0)

    def roofline(line: Line) -> Entry:
        return share(machine.roofline_share(list(line[1].runs.values())), 0)

    above = (
        "model GFLOP/s over the machine's rate in products of the layers' shape; above 100 where work is "
        "skipped"
    )
    least = "least seconds that the machine's rates allow, over the measured ones"
    return [Column("of dense rate %", dense, above), Column("of roofline %", roofline, least)]


def _ranks(cell: Cell) -> str:
    counts = {count for run in cell.runs.values() for count in run.summary["ranks"]}
    return ", ".join(map(str, sorted(counts)))


def partitions(digests: Sequence[Digest]) -> Section:
    """Return the class shares of the clients, a picture per partition."""
    found: dict[str, tuple[Digest, Holdings]] = {}
    for run in digests:
        if run.holdings is not None:
            found.setdefault(run.holdings.mark, (run, run.holdings))
    most = max((holdings.counts.shape[1] for _, holdings in found.values()), default=0)
    legend = areas_legend("Classes", [f"class {place}" for place in range(min(most, 2 * COLOURS))])
    charts = grid(_partition(run, holdings) for run, holdings in found.values())
    return Section("partition", "Who holds which classes", part("partition")() + legend + charts)


def _partition(run: Digest, holdings: Holdings) -> Markup:
    shown = min(len(run.clients), _MOST_CLIENTS)
    counts = holdings.counts[:shown].astype(np.float64)
    parts = [f"class {place}" for place in range(counts.shape[1])]
    rows = [
        client if dataset in client or len(set(holdings.datasets)) == 1 else f"{client} {dataset}"
        for client, dataset in zip(run.clients[:shown], holdings.datasets, strict=False)
    ]
    totals = counts.sum(axis=1, keepdims=True)
    notes = [f"{count:,.0f} examples" for count in totals[:, 0]]
    shares = 100 * counts / np.maximum(totals, 1)
    more = f", the first {shown} of {len(run.clients)} clients" if shown < len(run.clients) else ""
    named = f"{setting_of(run.config, 'dataset')}, {setting_of(run.config, 'partition')}"
    title = f"{named}: EMD {holdings.emd:.3f}{more}"
    return bars(title, "share of the client's examples", Bars(rows, parts, shares, notes, PERCENT))
