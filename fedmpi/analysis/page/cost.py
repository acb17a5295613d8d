"""Sections of the page on what it cost: phases, rates, traffic; and who holds which data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.cells import key
from fedmpi.analysis.page.axes import COLOURS
from fedmpi.analysis.page.cells import Cell, Line, Setting, lines
from fedmpi.analysis.page.collect import Digest, Float, Holdings
from fedmpi.analysis.page.marks import Bars, bars
from fedmpi.analysis.page.overview import NAMES, of_runs, spent
from fedmpi.analysis.page.sections import Section, areas_legend, grid, part, table
from fedmpi.analysis.page.units import JOULES, MEGABYTES, PERCENT, SECONDS, Unit, human
from fedmpi.analysis.summary import setting as setting_of
from fedmpi.config.documents import load_json
from fedmpi.errors import BadInput
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


def _pictures(
    settings: Sequence[Setting],
    kind: str,
    parts: Sequence[str],
    titles: tuple[str, str, str],
    units: Sequence[Unit],
    note: Callable[[Cell, float], str],
) -> Markup:
    """Return bars of what cells spent by part, a picture per setting; nothing where no run has any.

    Parameters
    ----------
    settings : sequence of Setting
    kind : str
        As of `_means`.
    parts : sequence of str
    titles : tuple of str
        Of a picture, of its axis, of the legend.
    units : sequence of Unit
    note : callable
        Returns what stands behind a cell's bar of this length.
    """
    title, axis, legend = titles
    charts = []
    for each in settings:
        cells = [cell for cell in each.cells if any(getattr(run, kind) for run in cell.runs.values())]
        if cells:
            values = np.nan_to_num(np.array([_means(cell, kind, parts) for cell in cells]))
            notes = [note(cell, length) for cell, length in zip(cells, values.sum(axis=1), strict=True)]
            given = Bars([cell.label for cell in cells], parts, values, notes, units)
            charts.append(bars(f"{each.heading}: {title}", axis, given))
    return areas_legend(legend, parts) + grid(charts) if charts else Markup("")


def time(settings: Sequence[Setting], machine: Machine | None) -> Section:
    """Return where the time went, and how fast the work was done."""

    def most(cell: Cell, length: float) -> str:
        return "{} {:.0%}".format(*costliest(cell))

    def whole(cell: Cell, length: float) -> str:
        return human(cell.mean("joules"), JOULES)

    titles = ("time by phase", "time of a rank", "Phases")
    content = part("time")() + _pictures(settings, "phases", PHASES, titles, SECONDS, most)
    titles = ("secure sums by step", "time of a rank", "Steps of a secure sum")
    content += _pictures(settings, "secure", tuple(SECURE_STEPS), titles, SECONDS, _amount(SECONDS))
    titles = ("energy by phase", "processors and memory of all nodes", "Phases")
    energy = _pictures(settings, "joules", PHASES, titles, JOULES, whole)
    content += part("energy")() + energy if energy else energy
    return Section("time", "Time: which phase costs the most", content + _rates(settings, machine))


def traffic(settings: Sequence[Setting]) -> Section:
    """Return the bytes of each collective."""
    found = dict.fromkeys(name for run in _runs(settings) for name in run.traffic)
    names = [name for name in found if name != "Ibarrier"]
    titles = ("bytes by collective", "payload of all ranks", "Collectives")
    charts = _pictures(settings, "traffic", names, titles, MEGABYTES, _amount(MEGABYTES))
    return Section("traffic", "Bytes by collective", part("traffic")() + charts)


def _amount(units: Sequence[Unit]) -> Callable[[Cell, float], str]:
    return lambda cell, length: human(length, units)


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


_APART = ("suite", "name", "seed", "algorithm", "rounds", "numerics_version", "checkpoint_seconds", "link")
"""Settings that change neither the work of a round nor the memory it moves."""


@dataclass(frozen=True)
class Machine:
    """A machine's rates.

    Attributes
    ----------
    cpu_model : str
    layer : float
        GFLOP/s in products of the layers' shape, one process.
    least_seconds : float
        What one round of `work` takes at least in one process, training and evaluation together.
    work : str
        Marks the data and settings of that round.
    """

    cpu_model: str
    layer: float
    least_seconds: float
    work: str

    def dense_share(self, runs: Sequence[Digest], rate: float) -> float | None:
        """Return a rate per rank over the machine's; None on another processor."""
        if any(run.provenance.get("cpu_model") != self.cpu_model for run in runs):
            return None
        return rate / self.layer

    def roofline_share(self, runs: Sequence[Digest]) -> float | None:
        """Return least seconds over measured ones; None for other work, or on another processor."""
        if any(key(run.config, *_APART) != self.work for run in runs) or self.dense_share(runs, 1.0) is None:
            return None
        shares = []
        for run in runs:
            ranks = run.summary["ranks"][-1]
            busy = ranks * (run.phases.get("train", 0.0) + run.phases.get("evaluate", 0.0))
            shares.append(self.least_seconds * run.summary["rounds"] / busy if busy else np.nan)
        return float(np.mean(shares))


def read_machine(path: Path) -> Machine:
    """Read what `fedmpi bench train --json` printed.

    Raises
    ------
    BadInput
        It cannot be read, or is something else.
    """
    try:
        found = load_json(path, "file")
        results = found["results"]
        return Machine(
            cpu_model=str(found["provenance"]["cpu_model"]),
            layer=float(results["layer_gflops"]),
            least_seconds=float(sum(results["least_seconds"].values())),
            work=key(found["settings"]["case"], *_APART),
        )
    except BadInput as error:
        raise BadInput(f"--machine {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"--machine {path}: not what `fedmpi bench train --json` prints") from error
