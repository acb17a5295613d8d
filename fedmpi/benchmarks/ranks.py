"""The same run on several numbers of ranks in turn, each started by mpiexec: what more workers gain."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.benchmarks.samples import Measurement, Report, figures_of, in_turn, ratios
from fedmpi.benchmarks.whole_runs import attempt_of
from fedmpi.comm.interrupt import Stopped

Float = npt.NDArray[np.float64]
_FASTEST = 10
"""Percent of the rounds that count as those in which the machine was left alone."""


@dataclass(frozen=True)
class Run:
    """Medians of one run's rounds by figure, and all its rounds; the first left out."""

    medians: Mapping[str, float]
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

    def one(number: int, turn: int) -> Run:
        heard(f"turn {turn + 1} of {warmup + repetitions}, {number} ranks")
        return _run(command, number)

    with _ended_by_term():
        turns = in_turn({str(number): partial(one, number) for number in ranks}, warmup, repetitions)
    found = dict(zip(ranks, turns.values(), strict=True))
    settings = {"command": list(command), "ranks": list(ranks), "repetitions": repetitions, "warmup": warmup}
    return summed_up(found, settings)


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


def _run(command: Sequence[str], ranks: int) -> Run:
    """Run once."""
    attempt = attempt_of(command, ranks, "bench ranks")
    work = [attempt.phases.index(name) for name in ("train", "evaluate")]
    busy = attempt.measurements["phase_seconds"][1:, :, work].sum(axis=2).max(axis=1)
    seconds = attempt.measurements["round_seconds"][1:]
    medians = {
        "round_seconds": float(np.median(seconds)),
        "overhead_seconds": float(np.median(seconds - busy)),
    }
    medians["overhead_share"] = medians["overhead_seconds"] / medians["round_seconds"]
    medians["server_cpu_seconds"] = float(np.median(attempt.measurements["cpu_seconds"][1:, 0]))
    return Run(medians, seconds)
