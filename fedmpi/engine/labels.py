"""What the labels of a case are: its task, the names of its columns, and how targets are scaled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.errors import BadInput

if TYPE_CHECKING:
    from fedmpi.datasets.raw import RawGraphs, Task
    from fedmpi.partition.partition import Partition

Float = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Labels:
    """Labels of a case.

    Attributes
    ----------
    task : str
        "classification", "multi-task" or "regression".
    names : tuple of str
        Names of the label columns; none for classification.
    center, scale : float64 [T]
        Regression is trained on ``(label - center) / scale``.
    constant : float64 [T]
        Mean label of all training graphs, the best constant prediction that needs no test data.
    val, test : float64 [graphs, T]
        Labels of the held-out graphs, client after client; no columns for classification.
    """

    task: Task
    names: tuple[str, ...]
    center: Float
    scale: Float
    constant: Float
    val: Float
    test: Float


def labels_of(case: Case, raws: Sequence[RawGraphs], partition: Partition) -> Labels:
    """Return what the labels of these datasets are.

    Raises
    ------
    BadInput
        Several datasets and another task than classification, or settings that the task does not have.
    """
    tasks = {raw.task for raw in raws}
    if tasks == {"classification"}:
        _refuse_scaled_targets(case, "classification")
        column, table = np.zeros(0), np.zeros((0, 0))
        return Labels("classification", (), column, column, column, table, table)
    if len(raws) > 1:
        raise BadInput(f"{', '.join(raw.name for raw in raws)}: molecules are one dataset per case")
    if case.model.own_head:
        raise BadInput('model.head = "own" is for graphs with one class each; use model.head = "dataset"')
    raw, splits = raws[0], partition.clients
    values = np.asarray(raw.labels)
    if raw.task == "multi-task":
        _refuse_scaled_targets(case, "yes-or-no labels")
    center, scale = np.zeros(raw.num_classes), np.ones(raw.num_classes)
    for split in splits:
        if len(split.train) and np.isnan(values[split.train]).all():
            raise BadInput(
                f"{raw.name}: {split.name} has no label in training: use fewer clients or another seed"
            )
    trained = values[np.concatenate([split.train for split in splits])]
    if case.dataset.targets == "standardised":
        center, scale = standardisation(trained)
    val, test = (
        values[np.concatenate(parts)] for parts in zip(*((s.val, s.test) for s in splits), strict=True)
    )
    return Labels(raw.task, raw.class_names, center, scale, _means(trained), val, test)


def standardisation(values: Float) -> tuple[Float, Float]:
    """Return mean and standard deviation of each task's labels [n, tasks], over those that are there.

    A task without any, or with equal ones, stays as it is or is only centred.
    """
    labelled = ~np.isnan(values).all(axis=0)
    known = np.ascontiguousarray(values[:, labelled])
    center, scale = np.zeros(values.shape[1]), np.ones(values.shape[1])
    center[labelled], scale[labelled] = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    scale[scale == 0] = 1
    return center, scale


def _means(values: Float) -> Float:
    """Return the mean of each column over the labels that are there; NaN where none is."""
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    means: Float = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return means


def _refuse_scaled_targets(case: Case, what: str) -> None:
    if case.dataset.targets != "raw":
        raise BadInput(f'dataset.targets = "{case.dataset.targets}" is for regression, this is {what}')
