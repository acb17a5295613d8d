"""What a client costs in a round, by the number of clients: time, bytes, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedmpi.analysis.figures import KindOptions as Options
from fedmpi.analysis.figures import style
from fedmpi.analysis.names import COLOURS
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run
from fedmpi.store.schema import Array


class Costs(NamedTuple):
    """Medians over the rounds of a run's newest attempt but its first, a warm-up; bytes of clients over all.

    Attributes
    ----------
    clients, ranks : int
    wall_ms, cpu_ms : float
        Per client and round; processor time of all ranks together.
    client_kb : float
        Bytes a client sends and gets in a round, in kB.
    payload_kb : float
        Payload of all collectives in a round, of the rank that has most of it, in kB.
    server_gb, worker_gb : float
        Peak memory of rank 0 and of the largest other rank.
    """

    clients: int
    ranks: int
    wall_ms: float
    cpu_ms: float
    client_kb: float
    payload_kb: float
    server_gb: float
    worker_gb: float


def draw(runs: Sequence[Run], options: Options, source: DataSource | None = None) -> Figure:
    """Return three panels over the number of clients: time and bytes of a client-round, memory of a rank."""
    of_runs = [costs(run) for run in runs]
    if len({each.clients for each in of_runs}) < 2:
        raise BadInput("client-costs: all runs have as many clients, so there is nothing to draw")
    if len({each.ranks for each in of_runs}) > 1:
        raise BadInput("client-costs: runs on different numbers of ranks do not compare; name those of one")
    numbers = sorted({each.clients for each in of_runs})
    alike = ([each for each in of_runs if each.clients == number] for number in numbers)
    found = [Costs(*np.median(members, axis=0)) for members in alike]

    def panel(axis: Axes, lines: Mapping[str, str]) -> None:
        for place, (label, field) in enumerate(lines.items()):
            values = [getattr(each, field) for each in found]
            axis.plot(numbers, values, marker=style.MARKERS[place], color=COLOURS[place], label=label)
        axis.set(xlabel="clients", xscale="log")
        axis.set_xticks(numbers, [f"{each:,}" for each in numbers])
        axis.minorticks_off()
        axis.set_ylim(bottom=0)
        axis.legend()

    figure, _ = style.draw_panels(_PANELS, panel, columns=3, height=2.4)
    text = f"{of_runs[0].ranks} ranks, of which one serves; medians over rounds without the first."
    return style.add_caption(figure, text)


_PANELS: Sequence[tuple[str, Mapping[str, str]]] = (
    ("ms per client and round", {"wall-clock": "wall_ms", "CPU time, all ranks": "cpu_ms"}),
    ("kB per round", {"by one client": "client_kb", "collectives of a rank": "payload_kb"}),
    ("peak memory, GB", {"rank 0": "server_gb", "largest other rank": "worker_gb"}),
)
"""Fields of `Costs` by heading and label."""


def costs(run: Run) -> Costs:
    """Return what a run's clients cost."""
    number, attempt = len(run.clients), run.attempts[-1]
    traffic = (run.results["client_bytes_up"] + run.results["client_bytes_down"]).sum(axis=1)
    payload = _rounds(run, "collective_bytes").sum(axis=-1).max(axis=1)
    memory = attempt.measurements["peak_host_bytes"].max(axis=0)
    return Costs(
        number,
        attempt.ranks,
        1e3 * float(np.median(_rounds(run, "round_seconds"))) / number,
        1e3 * float(np.median(_rounds(run, "cpu_seconds").sum(axis=1))) / number,
        float(np.median(traffic)) / number / 1e3,
        float(np.median(payload)) / 1e3,
        float(memory[0]) / 1e9,
        float(memory[1:].max(initial=memory[0] if attempt.ranks == 1 else 0)) / 1e9,
    )


def _rounds(run: Run, name: str) -> Array:
    """Return the newest attempt's rows of a measurement, without its first where there are more."""
    rows = run.attempts[-1].measurements[name]
    return rows[1:] if len(rows) > 1 else rows
