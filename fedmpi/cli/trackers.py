"""Live trackers: TensorBoard, MLflow and Weights & Biases are told of each round, beside the record."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol

from fedmpi.analysis.options import flat
from fedmpi.analysis.tensorboard import EventFile, of_round
from fedmpi.case.schema import Case
from fedmpi.cli.progress import Console
from fedmpi.metrics.metric import Metric
from fedmpi.partition.table import PartitionTable
from fedmpi.runs.reporting import RoundReport
from fedmpi.runs.run_folder import Opening
from fedmpi.store.reader import Run, load_run

_PATIENCE_S = 20.0
"""For what a tracker has still to send at the end of a run."""


class Tracker(Protocol):
    """What is told of a run; an error of its methods ends the tracking and not the run."""

    def begin(self, run: Run) -> None:
        """Begin a run, or go on with it after an interruption."""

    def log(self, step: int, now: float, values: Mapping[str, float]) -> None:
        """Take the values of a round; steps count from 1, `now` is in Unix seconds."""

    def end(self, complete: bool) -> None:
        """End the run."""


def identity(run: Run) -> str:
    """Return a name of 16 hexadecimal digits that a run keeps when it is resumed."""
    return hashlib.sha256(f"{run.config_digest} {run.attempts[0].started}".encode()).hexdigest()[:16]


class TensorBoard:
    """Writes an event file into the run's folder."""

    def begin(self, run: Run) -> None:
        """See `Tracker`."""
        now = time.time()
        path = run.folder / f"events.out.tfevents.{int(now)}.{os.getpid()}.fedmpi"
        self._stream = path.open("wb")
        self._events = EventFile(self._stream, now)

    def log(self, step: int, now: float, values: Mapping[str, float]) -> None:
        """See `Tracker`."""
        for tag, value in values.items():
            self._events.add(tag, step, now, value)
        self._stream.flush()

    def end(self, complete: bool) -> None:
        """See `Tracker`."""
        self._stream.close()


class MLflow:
    """Tells the server or store that MLFLOW_TRACKING_URI names; the experiment is the suite."""

    def begin(self, run: Run) -> None:
        """See `Tracker`."""
        from mlflow import MlflowClient
        from mlflow.entities import Metric as Value
        from mlflow.entities import Param

        self._client, self._value = MlflowClient(), Value
        suite, case = (str(run.config[key]) for key in ("suite", "name"))
        known = self._client.get_experiment_by_name(suite)
        experiment = known.experiment_id if known else self._client.create_experiment(suite)
        tags = {"fedmpi.run": identity(run), "fedmpi.folder": str(run.folder.absolute())}
        found = self._client.search_runs([experiment], f"tags.`fedmpi.run` = '{tags['fedmpi.run']}'")
        if found:
            self._id = found[0].info.run_id
            return
        self._id = self._client.create_run(experiment, run_name=case, tags=tags).info.run_id
        settings = [Param(key, str(value)) for key, value in flat(run.config).items()]
        for first in range(0, len(settings), 100):  # the most of one call
            self._client.log_batch(self._id, params=settings[first : first + 100])

    def log(self, step: int, now: float, values: Mapping[str, float]) -> None:
        """See `Tracker`."""
        self._client.log_batch(
            self._id, [self._value(tag, value, int(1000 * now), step) for tag, value in values.items()]
        )

    def end(self, complete: bool) -> None:
        """See `Tracker`."""
        self._client.set_terminated(self._id, "FINISHED" if complete else "KILLED")


class WeightsAndBiases:
    """Writes a run into ``wandb/``, offline unless WANDB_MODE says otherwise; the project is the suite."""

    def begin(self, run: Run) -> None:
        """See `Tracker`."""
        import wandb

        suite, case = (str(run.config[key]) for key in ("suite", "name"))
        self._run = wandb.init(
            project=suite.replace("/", "-"),
            name=case,
            id=identity(run),
            resume="allow",
            config={**run.config, "folder": str(run.folder.absolute())},
            mode=None if "WANDB_MODE" in os.environ else "offline",
            settings=wandb.Settings(console="off", silent=True),
        )

    def log(self, step: int, now: float, values: Mapping[str, float]) -> None:
        """See `Tracker`."""
        self._run.log(dict(values), step=step)

    def end(self, complete: bool) -> None:
        """See `Tracker`."""
        self._run.finish(exit_code=0 if complete else 1)


_TRACKERS: Mapping[str, Callable[[], Tracker]] = {
    "tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WeightsAndBiases,
}  # fmt: skip


class Tracked:
    """A console and a tracker beside it, which a thread of its own tells what the console shows.

    Parameters
    ----------
    console : Console
    folder : Path
        Of the run.
    name : str
        The setting `track`.
    """

    def __init__(self, console: Console, folder: Path, name: str) -> None:
        self._console, self._folder, self._name = console, folder, name
        self._tracker = _TRACKERS[name]()
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, daemon=True)
        self._metrics: tuple[Metric, ...] = ()
        self._wrong = ""

    def begin(
        self,
        case: Case,
        metrics: tuple[Metric, ...],
        table: PartitionTable,
        opening: Opening,
        facts: dict[str, Any],
    ) -> None:
        """See `Observer.begin`."""
        self._console.begin(case, metrics, table, opening, facts)
        self._metrics = metrics
        self._calls.put(partial(self._tracker.begin, load_run(self._folder)))
        self._thread.start()

    def round(self, report: RoundReport) -> None:
        """See `Observer.round`."""
        self._console.round(report)
        values = of_round(report.results, report.measurements, self._metrics)
        self._calls.put(partial(self._tracker.log, report.round + 1, time.time(), values))

    def note(self, text: str) -> None:
        """See `Observer.note`."""
        self._console.note(text)

    def end(self, complete: bool) -> None:
        """Let the tracker send what it has, and say what went wrong."""
        if not self._thread.is_alive() and not self._wrong:
            return
        self._calls.put(partial(self._tracker.end, complete))
        self._calls.put(None)
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            self._wrong = f"no answer within {_PATIENCE_S:.0f} s of the run's end"
        if self._wrong:
            self.note(f'warning: track = "{self._name}": {self._wrong}; the record has all')

    def _work(self) -> None:
        for call in iter(self._calls.get, None):
            try:
                call()
            except BaseException as error:  # whatever a tracker does, the run goes on
                self._wrong = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
                return
