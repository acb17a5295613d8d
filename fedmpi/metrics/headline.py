"""The one score by which a run is judged, where its graphs have no single class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]

NAMES = {"roc_auc": ("ROC-AUC", True), "rmse": ("RMSE", False)}
"""Fields ``val_NAME`` and ``test_NAME`` of a record: what they are called, and whether higher is better."""

SCORES = {
    "roc_auc": NAMES["roc_auc"],
    "prc_auc": ("PRC-AUC", True),
    "rmse": NAMES["rmse"],
    "mae": ("MAE", False),
    "r2": ("R2", True),
}
"""All scores over all clients' graphs, of which a record has those of its task, likewise named."""

OF_LABELS = ("rmse", "mae")
"""Those in the labels' own unit; the others are numbers without unit."""


@dataclass(frozen=True)
class Headline:
    """A score over all clients' graphs by round.

    Attributes
    ----------
    name : str
    higher : bool
        Whether higher is better.
    val, test : float64 [R]
        NaN in rounds without evaluation.
    """

    name: str
    higher: bool
    val: Float
    test: Float

    @property
    def last(self) -> float:
        """Test score of the last evaluated round."""
        return _at(self.test, np.flatnonzero(~np.isnan(self.test))[-1:])

    @property
    def best_by_validation(self) -> float:
        """Test score of the round of the best validation score, the earliest of equals."""
        return _at(self.test, self.best_round)

    @property
    def best_round(self) -> npt.NDArray[np.int64]:
        """That round, 0-based, as an array of one; of none if no round was evaluated."""
        return self._best(self.val)

    @property
    def as_published(self) -> float:
        """Best test score of any round: chosen on test data, as FedGraphNN's tables."""
        return _at(self.test, self._best(self.test))

    def _best(self, values: Float) -> npt.NDArray[np.int64]:
        if np.isnan(values).all():
            return np.zeros(0, np.int64)
        return np.array([(np.nanargmax if self.higher else np.nanargmin)(values)])


def _at(values: Float, place: npt.NDArray[np.int64]) -> float:
    return float(values[place[0]]) if len(place) else math.nan


def headline(results: Mapping[str, npt.NDArray[Any]]) -> Headline | None:
    """Return the score of a record's results, or of one round's; None where accuracy is what counts."""
    for field, (name, higher) in NAMES.items():
        if f"test_{field}" in results:
            val, test = (np.atleast_1d(results[f"{part}_{field}"]) for part in ("val", "test"))
            return Headline(name, higher, val, test)
    return None


def scores_text(results: Mapping[str, npt.NDArray[Any]]) -> tuple[str, str]:
    """Return the scores of one round in words: in full, and as short as a progress bar needs it."""
    found = headline(results)
    if "clustering_accuracy" in results:
        accuracy, f1 = (float(results[f"clustering_{name}"]) for name in ("accuracy", "f1"))
        probe = f"  probe {float(results['probe_accuracy']):.4f}" if "probe_accuracy" in results else ""
        return f"clustering acc {accuracy:.4f}  macro F1 {f1:.4f}{probe}", f"clustering {accuracy:.4f}"
    if found is None:
        val, test = (_mean(results[f"{part}_accuracy"]) for part in ("val", "test"))
        return f"val acc {val:.4f}  test acc {test:.4f}", f"val {val:.4f} test {test:.4f}"
    val, test = float(found.val[0]), float(found.test[0])
    return f"val {found.name} {val:.4f}  test {found.name} {test:.4f}", f"val {val:.4f} test {test:.4f}"


def _mean(values: npt.NDArray[Any]) -> float:
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else math.nan
