"""The same asynchronous runs here and in APPFL, ``bench/peers/appfl_async.py``, in turn."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedmpi.benchmarks.peer_programs import NAME, Children, Outcome, finished, in_turn, saved, version_of
from fedmpi.benchmarks.samples import Measurement, Report, Turns, against_peer, figures_of
from fedmpi.benchmarks.whole_runs import only_case, run
from fedmpi.case.schema import Case
from fedmpi.comm.interrupt import raised
from fedmpi.comm.launch import launcher
from fedmpi.config import locations
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.registry.check import Checked
from fedmpi.store import arrivals
from fedmpi.store.reader import load_run

RANKS = 3
"""The server, and two that train."""


def compare(
    cases: Sequence[tuple[Checked, Sequence[str]]],
    source: DataSource,
    python: Path,
    turns: Turns,
    told: Callable[[str], None],
) -> Report:
    """Time runs of the peer and of fedmpi in turn, case by case; each starts its own ranks.

    Parameters
    ----------
    cases : sequence
        Cases by the real clock, each with the words after ``fedmpi`` that run it.
    source : DataSource
    python : Path
        Of an environment with APPFL.
    turns : Turns
    told : callable
        Told of every run before it starts.

    Returns
    -------
    Report
        Per case and program the figures of `Outcome`, and the ratio peer / fedmpi of each pair; in `results`
        its median with a 95 % interval, the median test accuracies, and the peer's `train_cpu_seconds`.

    Raises
    ------
    BadInput
        There is no APPFL or no mpiexec, or the data cannot be used.
    RunFailed
        A run ended with an error.
    """
    version = version_of(python, "appfl")
    if version is None:
        raise BadInput(f"--peer {python}: name a Python that has APPFL (bench/peers/README.md)")
    measurements: list[Measurement] = []
    results: dict[str, Any] = {}
    statements = []
    for checked, command in cases:
        name = checked.case.name
        with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as folder, raised(signal.SIGTERM):
            graphs = saved(checked, source, Path(folder) / "graphs.npz")
            peers_run = partial(peer_run, checked.case, python, graphs)
            runs = {"peer": peers_run, "fedmpi": partial(own_run, checked.case, command)}
            found = in_turn(runs, turns, told)
        peer, own = (figures_of([each.figures for each in outcomes]) for outcomes in found.values())
        rows, ratios = against_peer({"setting": name}, peer, own)
        measurements += rows
        scores = {key: float(np.median([e.accuracy for e in each])) for key, each in found.items()}
        training = float(np.median([each.training for each in found["peer"]]))
        results[name] = {**ratios, "test_accuracy": scores, "peer_train_cpu_seconds": training}
        statements.append(_statement(name, peer, own, results[name]))
    settings = {
        "settings": [each.case.name for each, _ in cases],
        "ranks": RANKS,
        "appfl": version,
        **vars(turns),
    }
    return Report("peers", settings, measurements, results, statements)


def peer_run(case: Case, python: Path, graphs: Path) -> Outcome:
    """Run the peer on the clients' graphs."""
    script = locations.find("peers/asynchronous").with_name("appfl_async.py")
    schedule = case.schedule.model_dump()
    options = {
        "updates": case.rounds * case.schedule.updates,
        "buffer": case.schedule.updates,
        "rate": schedule["rate"],
        "exponent": schedule["exponent"],
        "seed": case.seed,
    }
    words = [str(python), "-m", "mpi4py", str(script), str(graphs)]
    command = [*_starter(python), *words, *(f"--{name}={value}" for name, value in options.items())]
    found, taken = finished(command, "APPFL")
    cpu = sum(found["cpu_seconds"]) / found["updates"]
    figures = {"update_seconds": found["update_seconds"], "update_cpu_seconds": cpu, **taken}
    return Outcome(figures, found["test_accuracy"], found["train_seconds"])


def _starter(python: Path) -> list[str]:
    """Return the words that start the peer's ranks: by the launcher of its own MPI, where it has one."""
    beside = python.with_name("mpiexec")
    return [str(beside), "-n", str(RANKS)] if beside.exists() else launcher(RANKS, NAME)


def own_run(case: Case, command: Sequence[str]) -> Outcome:
    """Run a case by the real clock, into a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as folder:
        starter, whole = launcher(RANKS, NAME), Children()
        run(command, Path(folder), starter, f"{NAME}: fedmpi ended with")
        taken = whole.figures
        record = load_run(only_case(Path(folder)))
        order = arrivals.load(record.folder, record.config_digest, len(record.clients), 1)
    assert order is not None
    size = case.schedule.updates
    seconds = float(record.measured("virtual_seconds")[1:].mean()) / size
    cpu = order["cpu_seconds"] / (size * case.rounds)
    figures = {"update_seconds": seconds, "update_cpu_seconds": cpu, **taken}
    return Outcome(figures, float(record.results["test_accuracy"][-1].mean()))


def _statement(name: str, peer: Mapping[str, Any], own: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    parts = [
        f"{title} {each['median']:.2f}x (95 %: {each['low']:.2f} to {each['high']:.2f})"
        for title, each in (("seconds", found["update_ratio"]), ("CPU", found["update_cpu_ratio"]))
    ]
    times = [1e3 * each["update_seconds"].median for each in (peer, own)]
    scores = [100 * found["test_accuracy"][program] for program in ("peer", "fedmpi")]
    return (
        f"{name}, an update: peer / fedmpi {', '.join(parts)}; {times[0]:.1f} and {times[1]:.1f} ms; "
        f"test accuracy {scores[0]:.1f} and {scores[1]:.1f} %"
    )
