"""One round of a run in a line: what `fedmpi run` and `fedmpi watch` print of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedmpi.metrics import clients
from fedmpi.metrics.metric import Metric

if TYPE_CHECKING:
    from fedmpi.runs.reporting import RoundReport
    from fedmpi.store.events import Round


def round_line(
    metrics: Sequence[Metric], found: Round | RoundReport, planned: int, more: str = ""
) -> tuple[str, str]:
    """Return a round in a line, and its headline as short as a progress bar needs it.

    Parameters
    ----------
    metrics : sequence of Metric
        The headline first. In the line stand those that are taken as the headline is: of the same scope.
    found : Round or RoundReport
    planned : int
        Rounds of the whole run.
    more : str
        What stands before the seconds.
    """
    results, headline = found.results, metrics[0]
    shown = [
        f"{each.label(part)} {_mean(results[each.field(part)])}"
        for each in ([headline] if headline.held_out else metrics)
        for part in each.parts
    ]
    width, seconds = len(str(planned)), float(found.measurements["round_seconds"])
    text = "  ".join([f"train loss {_mean(results['train_loss'])}", *shown])
    line = f"round {found.round + 1:{width}d}/{planned}  {text}  {more}{seconds:.3f} s"
    return line, "  ".join(shown[: len(headline.parts)])


def _mean(values: npt.NDArray[Any]) -> str:
    return f"{clients.mean(np.atleast_1d(values)):.4f}"
