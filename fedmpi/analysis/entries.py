"""A metric's value as an entry of a table."""

from __future__ import annotations

import math
from dataclasses import replace

from fedmpi.judging.estimates import Estimate
from fedmpi.metrics.metric import Metric
from fedmpi.tables.table import Entry, number


def score(metric: Metric, value: float | Estimate | None, kind: str = "", sign: str = "") -> Entry:
    """Return a metric's value as people read it, with half the width of its interval where it has one.

    Parameters
    ----------
    metric : Metric
    value : float or Estimate or None
    kind : str
        Its class on the page.
    sign : str
        "+" for a difference.
    """
    found = value if isinstance(value, Estimate) else Estimate(math.nan if value is None else value)
    shown = number(metric.scale * found.mean, metric.digits, kind, sign)
    if math.isnan(found.half):
        return shown
    return replace(shown, text=f"{shown.text} ± {metric.scale * found.half:,.{metric.digits}f}")
