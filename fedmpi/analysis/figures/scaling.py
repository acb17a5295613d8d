"""What runs cost by their size: over ranks, over clients, and secure sums over clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, ScalarFormatter

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.figures import Kind, style
from fedmpi.analysis.names import COLOURS
from fedmpi.analysis.scaling.points import point
from fedmpi.analysis.scaling.tables import Series, series
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run
from fedmpi.store.schema import Array


class Scaling(Kind):
    """Speedup and efficiency over ranks, with what the fitted model predicts.

    Attributes
    ----------
    with_server : bool
        Whether the server's rank counts among the ranks that efficiency divides by.
    predict : tuple of int
        Further numbers of ranks to predict.
    """

    with_server: bool = True
    predict: tuple[int, ...] = ()

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return speedup and efficiency of every case that was run on several numbers of ranks."""
        points = [found for found in map(point, runs) if found is not None]
        found = series(points, self.with_server, self.predict)
        if not found:
            words = "no case was run on several numbers of ranks, so there is nothing to draw"
            raise BadInput(f"scaling: {words}")
        figure, (speedups, efficiencies) = style.panels(2, height=2.8)
        for number, each in enumerate(found):
            colour, marker = COLOURS[number % len(COLOURS)], style.MARKERS[number % len(style.MARKERS)]
            _series(speedups, efficiencies, each, colour, marker)
        counts = sorted({row.ranks for each in found for row in each.rows})
        for axis, label in ((speedups, "speedup"), (efficiencies, "efficiency")):
            _powers_of_two(axis, "ranks", counts)
            axis.set_ylabel(label)
        speedups.set_yscale("log", base=2)
        speedups.yaxis.set_major_formatter(ScalarFormatter())
        speedups.yaxis.set_minor_formatter(NullFormatter())
        efficiencies.axhline(1.0, color="#333333", linewidth=0.8, zorder=1)
        efficiencies.set_ylim(bottom=0)
        figure.legend(loc="outside upper center", ncols=min(2, len(found)))
        bases = ", ".join(dict.fromkeys(str(each.base.ranks) for each in found))
        counted = {each.mode: "counts" if each.with_server else "does not count" for each in found}
        server = "; ".join(f"{mode}: the server's rank {counts}" for mode, counts in counted.items())
        text = f"Against the fewest ranks measured ({bases}); {server}. Dots: measured, median "
        text += "over runs; bars: their extremes; dashed: the model fitted to them."
        return style.add_caption(figure, text)


def _powers_of_two(axis: Axes, label: str, ticks: Sequence[int]) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks)
    axis.xaxis.set_major_formatter(ScalarFormatter())
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel(label)


def _series(speedups: Axes, efficiencies: Axes, each: Series, colour: str, marker: str) -> None:
    base = each.base
    assert base.seconds is not None
    ranks = np.array([row.ranks for row in each.rows])
    ideal = np.array([1.0 if each.mode == "weak" else row.counted / base.counted for row in each.rows])
    seconds = np.array([(row.seconds, row.low, row.high, row.predicted) for row in each.rows], np.float64)
    look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "none", "elinewidth": 0.8}
    label = f"{each.mode}: {each.title}"
    for axis, divisors in ((speedups, np.ones(len(ideal))), (efficiencies, ideal)):
        middle, high, low, predicted = base.seconds / seconds.T / divisors
        there = ~np.isnan(middle)
        bars = np.array([middle - low, high - middle])[:, there]
        axis.errorbar(ranks[there], middle[there], bars, label=label if axis is speedups else None, **look)
        axis.plot(ranks, predicted, color=colour, linestyle=(0, (5, 2)), linewidth=0.9)
    speedups.plot(ranks, ideal, color="#999999", linewidth=0.7, zorder=1)


class ClientCosts(Kind):
    """What a client costs in a round, by the number of clients: time, bytes, memory."""

    def draw(self, runs: Sequence[Run]) -> Figure:
        """Return panels over the number of clients: time and bytes of a client-round, a rank's memory."""
        by_clients = dict(sorted(grouped(runs, lambda run: len(run.clients)).items()))
        if len(by_clients) < 2:
            raise BadInput("client-costs: all runs have as many clients, so there is nothing to draw")
        ranks = {run.attempts[-1].ranks for run in runs}
        if len(ranks) > 1:
            words = "runs on different numbers of ranks do not compare; name those of one"
            raise BadInput(f"client-costs: {words}")
        numbers = list(by_clients)
        found = [[costs(run) for run in members] for members in by_clients.values()]

        def panel(axis: Axes, heading: str) -> None:
            for place, label in enumerate(found[0][0][heading]):
                values = [np.median([each[heading][label] for each in members]) for members in found]
                axis.plot(numbers, values, marker=style.MARKERS[place], color=COLOURS[place], label=label)
            axis.set(xlabel="clients", xscale="log")
            axis.set_xticks(numbers, [f"{number:,}" for number in numbers])
            axis.minorticks_off()
            axis.set_ylim(bottom=0)
            axis.legend()

        headings = [(heading, heading) for heading in found[0][0]]
        figure, _ = style.draw_panels(headings, panel, columns=3, height=2.4)
        text = f"{ranks.pop()} ranks, of which one serves; medians over rounds without the first."
        return style.add_caption(figure, text)


def costs(run: Run) -> dict[str, dict[str, float]]:
    """Return what a run's clients cost, by panel and line.

    Medians over the rounds of its newest attempt but its first, a warm-up; bytes of clients over all rounds.
    CPU time is of all ranks together, and of collectives counts the payload of the rank that has most of it.
    """
    number, attempt = len(run.clients), run.attempts[-1]

    def rounds(name: str) -> Array:
        rows = attempt.measurements[name]
        return rows[1:] if len(rows) > 1 else rows

    traffic = (run.results["client_bytes_up"] + run.results["client_bytes_down"]).sum(axis=1)
    payload = rounds("collective_bytes").sum(axis=-1).max(axis=1)
    server, *workers = attempt.measurements["peak_host_bytes"].max(axis=0)
    return {
        "ms per client and round": {
            "wall-clock": 1e3 * float(np.median(rounds("round_seconds"))) / number,
            "CPU time, all ranks": 1e3 * float(np.median(rounds("cpu_seconds").sum(axis=1))) / number,
        },
        "kB per round": {
            "by one client": float(np.median(traffic)) / number / 1e3,
            "collectives of a rank": float(np.median(payload)) / 1e3,
        },
        "peak memory, GB": {
            "rank 0": float(server) / 1e9,
            "largest other rank": float(max(workers, default=server)) / 1e9,
        },
    }


_PROTOCOLS = {"secagg": "SecAgg", "secagg+": "SecAgg+", "lightsecagg": "LightSecAgg"}
_PHASES = {
    "total": "-",
    "offline": (0, (5, 2)),
    "upload": (0, (1.2, 1.2)),
    "recovery": (0, (5, 1.5, 1.2, 1.5)),
}
"""What is drawn, and its dashes; the total is the sum of the others."""


def secure_sums(measurements: Sequence[Mapping[str, Any]]) -> Figure:
    """Return the figure of what `fedmpi bench secure --json` printed; a row of panels per model size.

    The shape of FedGraphNN's Figure 9 (He et al. 2021): total running time, here in its parts; a panel per
    share of dropouts.
    """
    sizes = sorted({each["parameters"] for each in measurements})
    dropouts = sorted({each["dropout"] for each in measurements}, key=lambda text: float(text[:-2]))
    columns = 2 if len(sizes) == 1 else len(dropouts)
    figure, axes = style.panels(len(sizes) * len(dropouts), columns, 2.3, sharex=True, sharey="row")
    for axis, (size, dropout) in zip(axes, product(sizes, dropouts), strict=True):
        chosen = [e for e in measurements if e["parameters"] == size and e["dropout"] == dropout]
        _secure_panel(axis, chosen)
        axis.set_title(f"{size:,} parameters, {dropout} dropouts" if columns == 2 else f"{size:,}, {dropout}")
    for axis in axes[::columns]:
        axis.set_ylabel("CPU seconds")
    for axis in axes[:-columns]:
        axis.set_xlabel("")
    style.add_legend(figure, axes)
    text = "CPU seconds of one client and the server, one after the other: offline (a client's keys and "
    text += "shares), upload (a client's quantised and masked update, the server's sum), recovery (a "
    text += "client's answer, the server's unmasking). Medians over sums; bars: extremes of the total."
    return style.add_caption(figure, text)


def _secure_panel(axis: Axes, measurements: Sequence[Mapping[str, Any]]) -> None:
    for number, (protocol, name) in enumerate(_PROTOCOLS.items()):
        found = [each for each in measurements if each["protocol"] == protocol]
        found.sort(key=lambda each: each["clients"])
        clients = [each["clients"] for each in found]
        for phase, dashes in _PHASES.items():
            figures = [each["figures"][f"{phase}_seconds"] for each in found]
            medians = [each["median"] for each in figures]
            look: dict[str, Any] = {"color": COLOURS[number], "linestyle": dashes}
            if phase != "total":
                axis.plot(clients, medians, linewidth=0.8, label=f"{name}, {phase}", **look)
                continue
            axis.plot(clients, medians, linewidth=1.6, marker=style.MARKERS[number], label=name, **look)
            below = [each["median"] - each["minimum"] for each in figures]
            above = [each["maximum"] - each["median"] for each in figures]
            bars: dict[str, Any] = {"color": COLOURS[number], "fmt": "none", "elinewidth": 0.8}
            axis.errorbar(clients, medians, [below, above], **bars)
    axis.set_yscale("log")
    _powers_of_two(axis, "clients", sorted({each["clients"] for each in measurements}))
