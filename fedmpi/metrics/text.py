"""The metrics of one round in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.metrics import clients
from fedmpi.metrics.metric import Metric


def scores_text(metrics: Sequence[Metric], results: Mapping[str, npt.NDArray[Any]]) -> tuple[str, str]:
    """Return the metrics of one round in words: in full, and as short as a progress bar needs it.

    Parameters
    ----------
    metrics : sequence of Metric
        The headline first; in full of a headline that is held out, of all metrics where none is.
    results : mapping
        The round's results, without the round axis.
    """
    headline = metrics[0]
    if headline.held_out:
        val, test = (_number(results[headline.field(part)]) for part in ("val", "test"))
        return f"val {headline.title} {val}  test {headline.title} {test}", f"val {val} test {test}"
    listed = [f"{each.title} {_number(results[each.field()])}" for each in metrics if not each.held_out]
    return "  ".join(listed), listed[0]


def _number(values: npt.NDArray[Any]) -> str:
    return f"{clients.mean(np.atleast_1d(values)):.4f}"
