"""The same rounds on two cores here and in simulators of federated learning, ``bench/peers/``, in turn."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from fedmpi.errors import BadInput, RunFailed
from fedmpi.registry.check import Checked
from fedmpi.store.reader import load_run

WORKERS = 2
"""Ranks, processes or threads of each program."""


@dataclass(frozen=True)
class Simulator:
    """A way to run a package: its script, with words before and after it."""

    package: str
    script: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def title(self, version: str) -> str:
        """Return how reports call it."""
        return " ".join([self.package, version, *(word.rpartition("=")[2] for word in self.after)])


SIMULATORS = (
    Simulator("pfl", "pfl_simulation.py", ("-m", "torch.distributed.run", f"--nproc-per-node={WORKERS}")),
    Simulator("blazefl", "blazefl_simulation.py", after=("--mode=threads",)),
    Simulator("blazefl", "blazefl_simulation.py", after=("--mode=processes",)),
)


def simulators_of(pythons: Sequence[Path]) -> dict[str, tuple[Path, Simulator]]:
    """Return the simulators that these Pythons have, by title.

    Raises
    ------
    BadInput
        One has none.
    """
    found: dict[str, tuple[Path, Simulator]] = {}
    for python in pythons:
        versions = {name: version_of(python, name) for name in {each.package for each in SIMULATORS}}
        here = [(each, versions[each.package]) for each in SIMULATORS]
        titles = {each.title(version): (python, each) for each, version in here if version is not None}
        if not titles:
            raise BadInput(f"--peer {python}: name a Python that has pfl or BlazeFL (bench/peers/README.md)")
        found |= titles
    return found


def compare(
    cases: Sequence[tuple[Checked, Sequence[str]]],
    source: DataSource,
    pythons: Sequence[Path],
    turns: Turns,
    told: Callable[[str], None],
) -> Report:
    """Time runs of the simulators and of fedmpi in turn, case by case.

    Parameters
    ----------
    cases : sequence
        Cases with the words after ``fedmpi`` that run them.
    source : DataSource
    pythons : sequence of Path
        Of environments with simulators.
    turns : Turns
    told : callable
        Told of every run before it starts.

    Returns
    -------
    Report
        Per case and program the figures of `Outcome`, and the ratio simulator / fedmpi of each pair; in
        `results` their medians with 95 % intervals, and per program accuracy and training losses.

    Raises
    ------
    BadInput
        There is no simulator or no mpiexec, or the data cannot be used.
    RunFailed
        A run ended with an error, or trained or evaluated another number of graphs.
    """
    simulators = simulators_of(pythons)
    measurements: list[Measurement] = []
    results: dict[str, Any] = {}
    statements = []
    for checked, command in cases:
        name = checked.case.name
        with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as folder, raised(signal.SIGTERM):
            graphs = saved(checked, source, Path(folder) / "graphs.npz")
            runs: dict[str, Callable[[], Outcome]] = {
                title: partial(peer_run, checked.case, *each, graphs) for title, each in simulators.items()
            }
            found = in_turn(runs | {"fedmpi": partial(own_run, checked.case, command)}, turns, told)
        figures = {program: figures_of([each.figures for each in runs]) for program, runs in found.items()}
        results[name] = {program: _learnt(outcomes) for program, outcomes in found.items()}
        for title in simulators:
            rows, ratios = against_peer({"setting": name, "peer": title}, figures[title], figures["fedmpi"])
            measurements += rows
            results[name][title] |= ratios
            statements.append(_statement(name, title, figures, results[name]))
    settings = {"settings": [each.case.name for each, _ in cases], "workers": WORKERS, **vars(turns)}
    return Report("peers", settings, measurements, results, statements)


def peer_run(case: Case, python: Path, simulator: Simulator, graphs: Path) -> Outcome:
    """Run a simulator on the clients' graphs.

    Raises
    ------
    RunFailed
        It ended with an error, or a round did not train and evaluate each graph once.
    """
    script = locations.find("peers/simulators").with_name(simulator.script)
    options = {"rounds": case.rounds, "workers": WORKERS, "seed": case.seed}
    words = [str(graphs), *(f"--{name}={value}" for name, value in options.items())]
    command = [str(python), *simulator.before, str(script), *words, *simulator.after]
    found, taken = finished(command, simulator.package)
    with np.load(graphs, allow_pickle=False) as stored:
        train, val, test = stored["sizes"].sum(axis=0).tolist()
    if (found["trained"], found["evaluated"]) != ([train], [val + test]):
        counts = f"{found['trained']} and {found['evaluated']}, not {train} and {val + test}"
        raise RunFailed(f"{NAME}: {simulator.package} trains and evaluates {counts} graphs a round")
    figures = {name: found[name] for name in ("round_seconds", "round_cpu_seconds")}
    return Outcome({**figures, **taken}, found["test_accuracy"], losses=found["train_loss"])


def own_run(case: Case, command: Sequence[str]) -> Outcome:
    """Run a case on as many ranks, into a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as folder:
        starter, whole = launcher(WORKERS, NAME), Children()
        run(command, Path(folder), starter, f"{NAME}: fedmpi ended with")
        taken = whole.figures
        record = load_run(only_case(Path(folder)))
    figures = {
        "round_seconds": float(record.measured("round_seconds")[1:].mean()),
        "round_cpu_seconds": float(record.measured("cpu_seconds")[1:].sum(axis=1).mean()),
    }
    losses = record.results["train_loss"][1:].mean(axis=1).tolist()
    return Outcome({**figures, **taken}, float(record.results["test_accuracy"][-1].mean()), losses=losses)


def _learnt(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return medians of the last model's accuracy, and of the training loss by round from the second."""
    losses = np.median([each.losses for each in outcomes], axis=0)
    return {
        "test_accuracy": float(np.median([each.accuracy for each in outcomes])),
        "train_loss": losses.tolist(),
    }


def _statement(name: str, title: str, figures: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    parts = [
        f"{kind} {each['median']:.2f}x (95 %: {each['low']:.2f} to {each['high']:.2f})"
        for kind, each in (
            ("wall", found[title]["round_ratio"]),
            ("CPU", found[title]["round_cpu_ratio"]),
        )
    ]
    times = [1e3 * figures[each]["round_cpu_seconds"].median for each in (title, "fedmpi")]
    last = [found[each]["train_loss"][-1] for each in (title, "fedmpi")]
    return (
        f"{name}, a round: {title} / fedmpi {', '.join(parts)}; CPU {times[0]:.0f} and {times[1]:.0f} ms; "
        f"last training loss {last[0]:.3f} and {last[1]:.3f}"
    )
