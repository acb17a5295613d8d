"""The same run on several numbers of ranks in turn, each started by mpiexec: what more workers gain."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.benchmarks.samples import Measurement, Report, Samples, ratios
from fedmpi.comm.interrupt import Stopped
from fedmpi.comm.launch import launcher, python
from fedmpi.errors import RunFailed
from fedmpi.store.reader import AttemptRecord, load_run

Float = npt.NDArray[np.float64]
_FASTEST = 10
"""Percent of the rounds that count as those in which the machine was left alone."""

_FIGURES = ("round_seconds", "overhead_seconds", "overhead_share", "server_cpu_seconds")


@dataclass(frozen=True)
class Run:
    """Medians of one run's rounds by figure of `_FIGURES`, and all its rounds; the first left out."""

    medians: tuple[float, ...]
    seconds: Float


def measure(
    command: Sequence[str],
    ranks: Sequence[int],
    repetitions: int,
    warmup: int,
    heard: Callable[[str], None] = lambda text: None,
) -> Report:
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
    repetitions, warmup : int
        Turns that are measured, and turns before.
    heard : callable, optional
        Told of every run before it starts.

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
    found: dict[int, list[Run]] = {number: [] for number in ranks}
    with _ended_by_term():
        for turn in range(warmup + repetitions):
            for number in ranks:
                heard(f"turn {turn + 1} of {warmup + repetitions}, {number} ranks")
                run = _run(command, number)
                if turn >= warmup:
                    found[number].append(run)
    settings = {"command": list(command), "ranks": list(ranks), "repetitions": repetitions, "warmup": warmup}
    return summed_up(found, settings)


def summed_up(found: Mapping[int, Sequence[Run]], settings: Mapping[str, Any]) -> Report:
    """Return the report on runs by number of ranks, the first of which the others are compared with."""
    first, *_ = found
    figures = {number: _figures(runs) for number, runs in found.items()}
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


def _figures(runs: Sequence[Run]) -> dict[str, Samples]:
    columns = zip(*(run.medians for run in runs), strict=True)
    units = ("1" if name.endswith("share") else "s" for name in _FIGURES)
    return {name: Samples.of(unit, each) for name, unit, each in zip(_FIGURES, units, columns, strict=True)}


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return the line that says why a run ended, as far as one does."""
    lines = [line for text in (done.stdout, done.stderr) for line in text.strip().splitlines()]
    told = [line for line in lines if line.startswith("fedmpi:") or ": diverged:" in line]
    return (told or lines or ["without a word"])[-1]


@contextmanager
def _ended_by_term() -> Iterator[None]:
    """Have TERM end this process as Ctrl-C does, which also ends what it started and clears up."""

    def stop(number: int, frame: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def attempt_of(command: Sequence[str], ranks: int, name: str) -> AttemptRecord:
    """Run once into a folder of its own and return the record's last attempt.

    Raises
    ------
    BadInput
        There is no mpiexec, or the ranks are too many for this machine.
    RunFailed
        The run ended with an error; `name` is whose run it was.
    """
    started = launcher(ranks, name)
    with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as folder:
        whole = [*started, *python(), *command, "--out", folder]
        done = subprocess.run(whole, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise RunFailed(f"{name}: on {ranks} ranks code {done.returncode}: {_reason(done)}")
        (case,) = (path for path in Path(folder).iterdir() if path.is_dir())
        return load_run(case).attempts[-1]


def _run(command: Sequence[str], ranks: int) -> Run:
    """Run once."""
    attempt = attempt_of(command, ranks, "bench ranks")
    work = [attempt.phases.index(name) for name in ("train", "evaluate")]
    busy = attempt.measurements["phase_seconds"][1:, :, work].sum(axis=2).max(axis=1)
    seconds = attempt.measurements["round_seconds"][1:]
    overhead = float(np.median(seconds - busy))
    server = float(np.median(attempt.measurements["cpu_seconds"][1:, 0]))
    return Run((float(np.median(seconds)), overhead, overhead / float(np.median(seconds)), server), seconds)
