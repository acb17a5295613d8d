"""Running time of secure sums against the number of clients, a panel per share of dropouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

from fedmpi.analysis.figures import style
from fedmpi.analysis.names import COLOURS

_PROTOCOLS = {"secagg": "SecAgg", "secagg+": "SecAgg+", "lightsecagg": "LightSecAgg"}
_PHASES = {
    "total": "-",
    "offline": (0, (5, 2)),
    "upload": (0, (1.2, 1.2)),
    "recovery": (0, (5, 1.5, 1.2, 1.5)),
}
"""What is drawn, and its dashes; the total is the sum of the others."""


def picture(measurements: Sequence[Mapping[str, Any]]) -> Figure:
    """Return the figure of what `fedmpi bench secure --json` printed; a row of panels per model size.

    The shape of FedGraphNN's Figure 9 (He et al. 2021): total running time, here in its parts.
    """
    sizes = sorted({each["parameters"] for each in measurements})
    dropouts = sorted({each["dropout"] for each in measurements}, key=lambda text: float(text[:-2]))
    columns = 2 if len(sizes) == 1 else len(dropouts)
    figure, axes = style.panels(len(sizes) * len(dropouts), columns, 2.3, sharex=True, sharey="row")
    panels = [(size, dropout) for size in sizes for dropout in dropouts]
    for axis, (size, dropout) in zip(axes, panels, strict=True):
        chosen = [e for e in measurements if e["parameters"] == size and e["dropout"] == dropout]
        _panel(axis, chosen)
        axis.set_title(f"{size:,} parameters, {dropout} dropouts" if columns == 2 else f"{size:,}, {dropout}")
    for axis in axes[::columns]:
        axis.set_ylabel("CPU seconds")
    for axis in axes[-columns:]:
        axis.set_xlabel("clients")
    style.add_legend(figure, axes)
    return style.add_caption(
        figure,
        "CPU seconds of one client and the server, one after the other: offline (a client's keys and "
        "shares), upload (a client's quantised and masked update, the server's sum), recovery (a client's "
        "answer, the server's unmasking). Medians over sums; bars: extremes of the total.",
    )


def _panel(axis: Axes, measurements: Sequence[Mapping[str, Any]]) -> None:
    for number, (protocol, name) in enumerate(_PROTOCOLS.items()):
        found = [each for each in measurements if each["protocol"] == protocol]
        found.sort(key=lambda each: each["clients"])
        clients = [each["clients"] for each in found]
        for phase, dashes in _PHASES.items():
            figures = [each["figures"][f"{phase}_seconds"] for each in found]
            medians = [each["median"] for each in figures]
            whole = phase == "total"
            look: dict[str, Any] = {"color": COLOURS[number], "linestyle": dashes}
            if not whole:
                axis.plot(clients, medians, linewidth=0.8, label=f"{name}, {phase}", **look)
                continue
            axis.plot(clients, medians, linewidth=1.6, marker=style.MARKERS[number], label=name, **look)
            below = [each["median"] - each["minimum"] for each in figures]
            above = [each["maximum"] - each["median"] for each in figures]
            bars: dict[str, Any] = {"color": COLOURS[number], "fmt": "none", "elinewidth": 0.8}
            axis.errorbar(clients, medians, [below, above], **bars)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(sorted({each["clients"] for each in measurements}))
    axis.xaxis.set_major_formatter(ScalarFormatter())
    axis.xaxis.set_minor_locator(NullLocator())
