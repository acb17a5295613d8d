"""What the outputs of a trained model say of examples: classes, labels, numbers or scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor, tensor

from fedmpi.algorithms.fedproto import distances
from fedmpi.errors import BadInput
from fedmpi.trained.about import About, Outputs

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Predictions:
    """What a model says of n examples, in their order.

    Attributes
    ----------
    names : tuple of str
        Of the columns: classes, labels, numbers or relations.
    labels : list of str or None
        Most probable class of each example, where it has one.
    probabilities : float64 [n, C] or None
        Of classes, which add up to 1, or of each label or relation.
    values : float64 [n, T] or None
        Predicted numbers, in the labels' own units.
    scores : float64 [n, C] or None
        Of relations, DistMult's; of FedProto's classes minus the squared distance to their prototype,
        -infinity where there is none.
    """

    names: tuple[str, ...]
    labels: list[str] | None = None
    probabilities: Floats | None = None
    values: Floats | None = None
    scores: Floats | None = None


def _classes(about: About, outputs: Tensor) -> Predictions:
    return Predictions(about.names, _named(about, outputs), _array(outputs.softmax(dim=1)))


def _labels(about: About, outputs: Tensor) -> Predictions:
    return Predictions(about.names, probabilities=_array(outputs.sigmoid()))


def _numbers(about: About, outputs: Tensor) -> Predictions:
    values = _array(outputs) * np.array(about.scale) + np.array(about.center)
    return Predictions(about.names, values=values)


def _relations(about: About, outputs: Tensor) -> Predictions:
    return Predictions(about.names, probabilities=_array(outputs.sigmoid()), scores=_array(outputs))


def _prototypes(about: About, embeddings: Tensor) -> Predictions:
    width, missing = embeddings.shape[1], float("nan")
    rows = [(missing,) * width if row is None else row for row in about.prototypes]
    if any(len(row) != width for row in rows):
        raise BadInput(f"prototypes have other lengths than the model's vectors, {width}")
    known = tensor(rows).to(embeddings.device)
    scores = -distances(embeddings, known)
    return Predictions(about.names, _named(about, scores), scores=_array(scores))


def _named(about: About, scores: Tensor) -> list[str]:
    """Return the class with the highest score of each example."""
    return [about.names[number] for number in scores.argmax(dim=1).tolist()]


def _array(rows: Tensor) -> Floats:
    found: Floats = rows.cpu().numpy()
    return found


READERS: Mapping[Outputs, Callable[[About, Tensor], Predictions]] = {
    "classes": _classes,
    "labels": _labels,
    "numbers": _numbers,
    "relations": _relations,
    "prototypes": _prototypes,
}
"""What makes predictions of outputs, float64 [n, C]; of "prototypes", of embeddings, float64 [n, h]."""
