"""TensorBoard event files, written by TensorBoard's own writer of records; TensorFlow is not needed."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from fedmpi.analysis.costs import round_ends
from fedmpi.clock import seconds_of
from fedmpi.errors import BadInput
from fedmpi.metrics.clients import mean, mean_by_round
from fedmpi.metrics.metric import Metric
from fedmpi.store import disk
from fedmpi.store.reader import Run

_LOSSES = ("test_loss", "val_loss", "train_loss")
_CLIENTS = ("train_loss", "gradient_norm", "group")
_PARTS = ("test", "val", "train")
_TIMES = ("round_seconds", "virtual_seconds")

Rows = Mapping[str, npt.NDArray[Any]]
Scalar = tuple[str, int, float, float]
"""Tag, step, wall time, value."""


class EventFile:
    """Writes scalars to a stream of bytes; `begun` is in Unix seconds."""

    def __init__(self, stream: BinaryIO, begun: float) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary, self._records = Event, Summary, RecordWriter(stream)
        self._records.write(Event(wall_time=begun, file_version="brain.Event:2").SerializeToString())

    def add(self, tag: str, step: int, time: float, value: float) -> None:
        """Write a scalar."""
        summary = self._summary(value=[self._summary.Value(tag=tag, simple_value=value)])
        self._records.write(self._event(wall_time=time, step=step, summary=summary).SerializeToString())


def write(run: Run, folder: Path) -> Path:
    """Write a run's scalars into `folder`, which is the run's alone, and return the file.

    Steps are rounds counted from 1. Tags are ``mean/NAME`` (over clients), ``clients/NAME/FIELD``,
    ``time/NAME``, ``clusters``, and ``score/NAME`` of metrics that are one value of all clients.

    Raises
    ------
    BadInput
        TensorBoard is not installed.
    OSError
        It cannot be written.
    """
    if importlib.util.find_spec("tensorboard") is None:
        raise BadInput("event files are written by TensorBoard, which is missing: pip install tensorboard")
    begun = seconds_of(run.attempts[0].started) if run.attempts else 0.0
    content = io.BytesIO()
    events = EventFile(content, begun)
    for scalar in scalars(run):
        events.add(*scalar)
    target = folder / f"events.out.tfevents.{int(begun)}.fedmpi"
    disk.write_whole(target, content.getvalue())
    return target


def scalars(run: Run) -> Iterator[Scalar]:
    """Yield all scalars, round by round; what is NaN was not evaluated and is left out."""
    curves = {f"time/{name}": run.measured(name) for name in _TIMES} if run.attempts else {}
    curves |= {
        tag: mean_by_round(run.results[name]) for tag, name in _of_all(run.results, run.metrics).items()
    }
    curves["clusters"] = np.array([len(np.unique(group)) for group in run.results["group"]])
    by_client = _of_clients(run)
    for place, client in enumerate(run.clients):
        curves |= {f"clients/{client}/{tag}": run.results[name][:, place] for tag, name in by_client.items()}
    for number, time in enumerate(round_ends(run)):
        for tag, values in curves.items():
            if not math.isnan(value := float(values[number])):
                yield tag, number + 1, float(time), value


def of_round(results: Rows, measurements: Rows, metrics: Iterable[Metric]) -> dict[str, float]:
    """Return the scalars of one round that are not of single clients, by tag; none that is NaN.

    Parameters
    ----------
    results, measurements : dict of array
        By field, of a `RoundReport`.
    metrics : iterable of Metric
    """
    found = {tag: mean(np.atleast_1d(results[name])) for tag, name in _of_all(results, metrics).items()}
    found |= {f"time/{name}": float(measurements[name]) for name in _TIMES}
    found["clusters"] = float(len(np.unique(results["group"])))
    return {tag: value for tag, value in found.items() if not math.isnan(value)}


def _of_all(results: Rows, metrics: Iterable[Metric]) -> dict[str, str]:
    """Return the fields that stand for a whole round, by tag: means over clients, and scores of all."""
    found = {f"mean/{name}": name for name in _LOSSES if name in results}
    for metric in metrics:
        kind, parts = ("mean", _PARTS) if metric.scope == "client" else ("score", _PARTS[:2])
        names = dict.fromkeys(metric.field(part) for part in parts)
        found |= {f"{kind}/{name}": name for name in names if name in results}
    return found


def _of_clients(run: Run) -> dict[str, str]:
    """Return the fields by client, by tag."""
    found = {name: name for name in _CLIENTS if run.results[name].ndim > 1}
    for metric in run.metrics:
        for name in dict.fromkeys(metric.field(part) for part in _PARTS[:2]):
            stored = name if metric.scope == "client" else f"client_{name}"
            found |= {name: stored} if stored in run.results else {}
    return found
