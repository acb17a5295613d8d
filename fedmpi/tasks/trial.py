"""What the methods of a task return, tried on two examples before a run begins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedmpi.datasets.raw import RawGraphs
from fedmpi.errors import BadInput, FedmpiError, RankFailed
from fedmpi.kinds import file_of
from fedmpi.tasks.base import KINDS, Constants, Task
from fedmpi.tasks.pooled import PooledTask, filled

if TYPE_CHECKING:
    from torch import Tensor

    from fedmpi.partition.partition import ClientSplit


_OF_LABELS = ("labels", "class_names", "task")
"""What `examples` may change of a dataset."""


def examples_of(task: type[Task], raw: RawGraphs) -> RawGraphs:
    """Return a dataset with the labels that a task predicts.

    Raises
    ------
    BadInput
        `examples` fails, or returns no labels for these graphs.
    """
    found: RawGraphs = _call(task, "examples", task.examples, raw)
    if found is raw:
        return raw
    if not isinstance(found, RawGraphs):
        raise _wrong(task, "examples", found, "a RawGraphs is needed: dataclasses.replace(raw, labels=...)")
    if found.task not in KINDS:
        raise _wrong(task, "examples", found.task, f"task must be one of {', '.join(KINDS)}")
    for field in fields(raw):
        kept = field.name in _OF_LABELS or getattr(found, field.name) is getattr(raw, field.name)
        if not kept:
            raise BadInput(
                f"{_place(task, 'examples')} changed {field.name}: it may change {', '.join(_OF_LABELS)} only"
            )
    _refuse_labels(task, found)
    return found


def _refuse_labels(task: type[Task], found: RawGraphs) -> None:
    """Raise BadInput where the labels of a dataset do not fit its kind, its names or its examples."""
    names, labels = found.class_names, found.labels
    count = found.num_graphs if found.places is None else len(found.places)
    if not isinstance(names, tuple) or not names or not all(isinstance(name, str) for name in names):
        raise _wrong(task, "examples", names, "class_names must be a tuple of texts, one or more")
    shape = (count,) if found.task == "classification" else (count, len(names))
    if not isinstance(labels, np.ndarray) or labels.shape != shape:
        rows = f"for each {found.examples}"
        per = f"a class {rows}" if len(shape) == 1 else f"a row {rows}, a column per name"
        raise _wrong(task, "examples", labels, f"labels must be {list(shape)}, {per}")
    kind = "iu" if found.task == "classification" else "f"
    if labels.dtype.kind not in kind:
        what = "whole numbers" if kind == "iu" else "floats"
        raise _wrong(task, "examples", str(labels.dtype), f"labels must be {what}")
    if kind == "iu" and labels.size and not 0 <= labels.min() <= labels.max() < len(names):
        raise BadInput(f"{_place(task, 'examples')}: labels must be 0 to {len(names) - 1}, a class per name")
    if np.isinf(labels).any():
        raise BadInput(
            f"{_place(task, 'examples')} gave graph {int(np.argwhere(np.isinf(labels))[0][0])} an infinite "
            "label: labels are finite, NaN where one is missing"
        )


def try_out(task: Task, outputs: int, labels: np.ndarray) -> None:
    """Call what a task says of a batch with outputs of zeros, and check what comes back.

    Parameters
    ----------
    task : Task
        With a loss of its own.
    outputs : int
        Of the model for one example.
    labels : int64 [B] or float64 [B, T]
        Of some training examples.

    Raises
    ------
    BadInput
    """
    import torch

    kind, own = type(task), torch.from_numpy(np.ascontiguousarray(labels))
    batch = torch.zeros(len(labels), outputs, requires_grad=True)
    wanted = own.float() if own.is_floating_point() else own
    if isinstance(task, PooledTask):
        _try_pooled(task, batch, filled(wanted)[1], labels)
    loss = _call(kind, "loss", task.loss, batch, wanted)
    if not isinstance(loss, torch.Tensor) or loss.shape != () or not loss.requires_grad:
        raise _wrong(kind, "loss", loss, "a torch scalar with a gradient is needed, the mean of the batch")
    found = _call(kind, "outcome", task.outcome, batch.detach(), wanted)
    losses = getattr(found, "losses", None)
    if not isinstance(losses, np.ndarray) or losses.shape != (len(labels),):
        raise _wrong(kind, "outcome", found, f"an Outcome with losses [{len(labels)}] is needed")


def constants_of(task: Task, raws: Sequence[RawGraphs], splits: Sequence[ClientSplit]) -> Constants:
    """Return `Task.constants`, checked.

    Raises
    ------
    BadInput
        It fails, or returns something else than a score or None for every client by metric.
    """
    kind = type(task)
    found = _call(kind, "constants", task.constants, raws, splits)
    needed = f"a dict of metrics, of each a list of {len(splits)} floats or None, one for each client"
    if not isinstance(found, dict):
        raise _wrong(kind, "constants", found, needed)
    for name, listed in found.items():
        whole = isinstance(name, str) and isinstance(listed, list) and len(listed) == len(splits)
        numbers = [each for each in listed if each is not None] if whole else [math.nan]
        if not all(isinstance(each, float) and math.isfinite(each) for each in numbers):
            raise _wrong(kind, "constants", found, needed)
    return found


def guard(task: Task) -> None:
    """Have what a plug-in's task raises during a run name task, method and file."""
    if not type(task).__module__.startswith("fedmpi."):
        for method in ("loss", "outcome", "pack", "rows", "embeddings", "partition", "warm_up"):
            setattr(task, method, partial(_noted, type(task), method, getattr(task, method)))


def _noted(task: type[Task], method: str, called: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return called(*arguments)
    except SystemExit as error:
        raise RankFailed(f"{_place(task, method)} ended the process with exit code {error.code!r}") from None
    except Exception as error:
        error.add_note(f"{_place(task, method)} raised {type(error).__name__}")
        raise


def _try_pooled(task: PooledTask, batch: Tensor, wanted: Tensor, labels: np.ndarray) -> None:
    import torch

    kind, shape = type(task), batch.shape
    losses = _call(kind, "losses", task.losses, batch, wanted)
    if not isinstance(losses, torch.Tensor) or losses.shape != shape or not losses.requires_grad:
        needed = f"a torch tensor {list(shape)} with a gradient is needed, a loss for each label"
        raise _wrong(kind, "losses", losses, needed)
    predicted = _call(kind, "predictions", task.predictions, batch.detach())
    if not isinstance(predicted, torch.Tensor) or predicted.shape != shape:
        raise _wrong(kind, "predictions", predicted, f"a torch tensor {list(shape)} is needed")
    for metric in task.scored:
        with np.errstate(all="ignore"):
            score = _call(kind, "score", task.score, metric, labels, predicted.float().numpy())
        if not isinstance(score, np.ndarray) or score.shape != shape[1:] or score.dtype.kind != "f":
            needed = f"for {metric.name}; a float array {list(shape[1:])} is needed, a score per label column"
            raise _wrong(kind, "score", score, needed)


def _call(task: type[Task], method: str, called: Callable[..., Any], *arguments: Any) -> Any:
    """Call a method; what one of a plug-in raises becomes one line that names it."""
    try:
        return called(*arguments)
    except FedmpiError:
        raise
    except (Exception, SystemExit) as error:
        if task.__module__.startswith("fedmpi."):
            raise  # a defect
        text = " ".join(str(error).split())
        raise BadInput(f"{_place(task, method)} raised {type(error).__name__}: {text}") from error


def _wrong(task: type[Task], method: str, value: Any, needed: str) -> BadInput:
    return BadInput(f"{_place(task, method)} returned {_described(value)}: {needed}")


def _place(task: type[Task], method: str) -> str:
    return f"task {task.name}: `{method}` in {file_of(task)}"


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is None:
        return f"{value!r:.60}"
    gradient = ", without a gradient" if getattr(value, "requires_grad", True) is False else ""
    return f"a {type(value).__name__} {list(shape)}{gradient}"
