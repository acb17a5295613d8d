"""Whole runs as a user starts them, on several numbers of ranks in turn."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.benchmarks.samples import Measurement, Report, Turns, figures_of, ratios
from fedmpi.comm.interrupt import raised
from fedmpi.comm.launch import launcher, python
from fedmpi.errors import RunFailed
from fedmpi.store.reader import AttemptRecord, load_run

Float = npt.NDArray[np.float64]
Told = Callable[[str], None]
"""Told of every run before it starts."""

_FASTEST = 10
"""Percent of the rounds that count as those in which the machine was left alone."""


@dataclass(frozen=True)
class Run:
    """Medians of one run's rounds by figure, and all its rounds; the first left out."""

    medians: Mapping[str, float]
    seconds: Float


def ranks_in_turn(command: Sequence[str], ranks: Sequence[int], turns: Turns, told: Told) -> Report:
    """Start the same run on each number of ranks, and all of them again.

    Machines that others use are faster at one time than at another: so what is compared was measured in
    turn, and a ratio is that of neighbours. Who waits for two cores meets others more often than who
    waits for one: the fastest tenth of all rounds says what is left of a gain when nobody disturbs.

    Parameters
    ----------
    command : sequence of str
        The run, without ``--out``.
    ranks : sequence of int
        The first is what the others are compared with.
    turns : Turns
    told : callable

    Returns
    -------
    Report
        Per number of ranks the median round, what it takes beyond the busiest rank's training and
        evaluation, as seconds and as a share, and the gain: rounds of the first for one of these.

    Raises
    ------
    BadInput
        There is no mpiexec, or the ranks are too many for this machine.
    RunFailed
        A run ended with an error.
    """

    def one(number: int, turn: int) -> Run:
        told(f"turn {turn + 1} of {turns.warmup + turns.repetitions}, {number} ranks")
        return _run(command, number)

    with raised(signal.SIGTERM):  # as Ctrl-C, which also ends what was started and clears up
        found = turns.of({str(number): partial(one, number) for number in ranks})
    settings = {"command": list(command), "ranks": list(ranks), **vars(turns)}
    return summed_up({int(number): runs for number, runs in found.items()}, settings)


def summed_up(found: Mapping[int, Sequence[Run]], settings: Mapping[str, Any]) -> Report:
    """Return the report on runs by number of ranks, the first of which the others are compared with."""
    first, *_ = found
    figures = {number: figures_of([run.medians for run in runs]) for number, runs in found.items()}
    fastest = {
        number: float(np.percentile(np.concatenate([run.seconds for run in runs]), _FASTEST))
        for number, runs in found.items()
    }
    results: dict[str, dict[str, float]] = {"gain": {}, "gain_of_fastest": {}}
    statements = []
    for number, runs in found.items():
        gain = ratios(figures[first]["round_seconds"], figures[number]["round_seconds"])
        figures[number]["gain"] = gain
        results["gain"][str(number)] = gain.median
        results["gain_of_fastest"][str(number)] = fastest[first] / fastest[number]
        if number != first:
            statements.append(
                f"{number} ranks do {gain.median:.2f} times the rounds of {first} "
                f"({gain.minimum:.2f} to {gain.maximum:.2f} in {len(runs)} turn{'s' * (len(runs) > 1)}; "
                f"{fastest[first] / fastest[number]:.2f} by the fastest tenth of all rounds)"
            )
    measurements = [Measurement({"ranks": number}, each) for number, each in figures.items()]
    return Report("ranks", settings, measurements, results, statements)


def _run(command: Sequence[str], ranks: int) -> Run:
    """Run once, into a folder that is removed."""
    starter = launcher(ranks, "bench ranks")
    with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as folder:
        begin = time.time()
        run(command, Path(folder), starter, f"bench ranks: on {ranks} ranks")
        attempt = load_run(only_case(Path(folder))).attempts[-1]
    work = [attempt.phases.index(name) for name in ("train", "evaluate")]
    busy = attempt.measurements["phase_seconds"][1:, :, work].sum(axis=2).max(axis=1)
    seconds = attempt.measurements["round_seconds"][1:]
    round_s, overhead_s = float(np.median(seconds)), float(np.median(seconds - busy))
    medians = {
        "round_seconds": round_s,
        "overhead_seconds": overhead_s,
        "overhead_share": overhead_s / round_s,
        "server_cpu_seconds": float(np.median(attempt.measurements["cpu_seconds"][1:, 0])),
        **_start(attempt, begin),
        **_messages(attempt),
    }
    return Run(medians, seconds)


def _start(attempt: AttemptRecord, begin: float) -> dict[str, float]:
    """Return what it took until the first round, and the memory then: medians over ranks."""
    first_round = datetime.fromisoformat(attempt.started).timestamp()
    ranks = attempt.provenance["mpi"]["ranks"]
    memory = {
        f"{kind}_bytes": float(np.median([rank["memory_bytes"][kind] for rank in ranks]))
        for kind in ranks[0]["memory_bytes"]
    }
    return {
        "start_seconds": first_round - begin,
        "start_cpu_seconds": float(np.sum([rank["cpu_seconds"] for rank in ranks])),
        **memory,
        "peak_bytes": float(np.median(attempt.measurements["peak_host_bytes"][-1])),
    }


def _messages(attempt: AttemptRecord) -> dict[str, float]:
    """Return collectives and payload of a rank in a round: medians over rounds, of the rank with most."""
    names = {"round_calls": "collective_calls", "payload_bytes": "collective_bytes"}
    of_ranks = {name: attempt.measurements[field][1:].sum(axis=2) for name, field in names.items()}
    return {name: float(np.median(values.max(axis=1))) for name, values in of_ranks.items()}


def command_of(
    suite: str, changes: Sequence[str], *, mirror: Path | None, data: Path | None, offline: bool
) -> list[str]:
    """Return the words after ``fedmpi`` that run a suite, without ``--out``."""
    places = {"--mirror": mirror, "--data": data}
    words = ["run", suite, *(word for change in changes for word in ("--set", change))]
    words += [word for flag, place in places.items() if place is not None for word in (flag, str(place))]
    return [*words, *(["--offline"] if offline else [])]


def run(
    command: Sequence[str], out: Path, starter: Sequence[str] = (), what: str = "a run ended with"
) -> None:
    """Run a suite into a folder; its words after ``fedmpi`` are those of `command_of`.

    Raises
    ------
    RunFailed
        The run ended with an error: `what`, its exit code and the line that says why. All its lines are the
        error's notes.
    """
    whole = [*starter, *python(), *command, "--out", str(out)]
    done = subprocess.run(whole, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        lines = [line for text in (done.stdout, done.stderr) for line in text.strip().splitlines()]
        told = [line for line in lines if line.startswith("fedmpi:") or ": diverged:" in line]
        reason = (told or lines or ["without a word"])[-1]
        error = RunFailed(f"{what} code {done.returncode}: {reason}")
        error.add_note("\n".join(lines))
        raise error


def only_case(folder: Path) -> Path:
    """Return the folder of a suite's one case."""
    (case,) = (path for path in folder.iterdir() if path.is_dir())
    return case
