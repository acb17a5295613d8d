"""Peers that are programs of their own: how they are found, started and timed in turn with fedmpi."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedmpi.benchmarks.peers import load_reference
from fedmpi.benchmarks.samples import Turns
from fedmpi.client.federation import deal, load
from fedmpi.clock import Stopwatch
from fedmpi.datasets.source import DataSource
from fedmpi.errors import RunFailed
from fedmpi.registry.check import Checked

NAME = "bench peers"


@dataclass(frozen=True)
class Outcome:
    """What a run took, and how its last model scores.

    Attributes
    ----------
    figures : mapping
        Seconds by name: of an update or of a round, and `run_wall_seconds` and `run_cpu_seconds`: of the
        whole run.
    accuracy : float
        Mean over clients of the test accuracy of the last model.
    training : float
        CPU seconds of one local epoch, where the program tells them; else NaN.
    losses : sequence of float
        Training loss by round, where it is told.
    """

    figures: Mapping[str, float]
    accuracy: float
    training: float = np.nan
    losses: Sequence[float] = ()


def version_of(python: Path, package: str) -> str | None:
    """Return which version of a package a Python has; None where it, or the Python, is missing."""
    command = [str(python), "-c", f"import importlib.metadata as found; print(found.version({package!r}))"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def in_turn(
    runs: Mapping[str, Callable[[], Outcome]], turns: Turns, told: Callable[[str], None]
) -> dict[str, tuple[Outcome, ...]]:
    """Return the outcomes of all programs, a run of each in turn."""

    def one(program: str, run: Callable[[], Outcome], turn: int) -> Outcome:
        told(f"turn {turn + 1} of {turns.warmup + turns.repetitions}, {program}")
        return run()

    return turns.of({program: partial(one, program, run) for program, run in runs.items()})


def saved(checked: Checked, source: DataSource, path: Path) -> Path:
    """Write the graphs of a case's clients for the peer."""
    source.prepare(checked.case.dataset.name)
    raws = load(checked.case, source)
    reference = load_reference()
    clients = reference.splits_of(raws, deal(checked.case, checked.algorithm, raws))
    reference.save_splits(path, clients, raws[0].num_classes)
    return path


def finished(command: Sequence[str], title: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Run a peer; return the JSON object of its last line, and the seconds of the whole run.

    Raises
    ------
    RunFailed
        It ended with an error.
    """
    whole, threads = Children(), {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, env=threads
    )
    taken = whole.figures
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["without a word"]
        errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
        raise RunFailed(f"{NAME}: {title} has ended: {(errors or lines)[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found, taken


class Children:
    """Seconds of what this process starts and waits for from now on."""

    def __init__(self) -> None:
        self._watch, self._before = Stopwatch(), self._cpu()

    @staticmethod
    def _cpu() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    @property
    def figures(self) -> dict[str, float]:
        """Wall-clock seconds, and CPU seconds of the processes that have ended."""
        return {"run_wall_seconds": self._watch.wall, "run_cpu_seconds": self._cpu() - self._before}
