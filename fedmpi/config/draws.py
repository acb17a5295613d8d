"""Random search: settings of a suite's cases that are drawn from stated distributions.

Bergstra and Bengio, "Random search for hyper-parameter optimization", JMLR 13, 2012. A draw is a function of
the candidate's number, of the setting's name, and of the stream that a rule may name. So a candidate has the
same rate with all methods that draw rates from one distribution and stream, and more candidates leave the
earlier ones as they are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedmpi.config.tables import Settings, merge, nested
from fedmpi.errors import BadInput

AXIS = "draw"
"""The axis of a suite's candidates: draw1, draw2 and so on."""

DISTRIBUTIONS = ("log-uniform", "uniform", "choice")
_DIGITS = 5
"""Significant ones of a drawn number."""


def drawn(path: Path, table: Settings, stream: str, candidate: str) -> Settings:
    """Return the settings of a candidate.

    Parameters
    ----------
    path : Path
        The suite, for messages.
    table : dict
        Settings, nested as in a case, whose values are distributions: ``{ log-uniform = [low, high] }``,
        ``{ uniform = [low, high] }``, or ``{ choice = [...] }``.
    stream : str
        Other streams have other values; "" is that of rules without one.
    candidate : str
        Its label.

    Raises
    ------
    BadInput
        A value is no distribution.
    """
    found: Settings = {}
    for key, distribution in _flat(path, table, "").items():
        found = merge(found, nested(key, _value(path, key, distribution, _uniform(stream, candidate, key))))
    return found


def _flat(path: Path, table: Mapping[str, Any], prefix: str) -> dict[str, Mapping[str, Any]]:
    """Return the distributions by dotted key."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, value in table.items():
        key = f"{prefix}{name}"
        if not isinstance(value, Mapping) or not value:
            raise BadInput(
                f"{path}: where: draw: {key} needs a distribution, such as {{ log-uniform = [1e-4, 0.1] }}"
            )
        if value.keys() & set(DISTRIBUTIONS):
            found[key] = value
        else:
            found |= _flat(path, value, f"{key}.")
    return found


def _value(path: Path, key: str, distribution: Mapping[str, Any], place: float) -> Any:
    """Return the value at a place in [0, 1) of a distribution."""
    (name, given), *others = distribution.items()
    place_of = f"{path}: where: draw: {key}"
    if others or not isinstance(given, list) or not given:
        raise BadInput(f"{place_of} needs one of {', '.join(DISTRIBUTIONS)}, with a list")
    if name == "choice":
        return given[int(place * len(given))]
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in given)
    low, high = (float(given[0]), float(given[-1])) if numbers and len(given) == 2 else (0.0, 0.0)
    if not (math.isfinite(low) and math.isfinite(high) and low < high and (name == "uniform" or low > 0)):
        above = "" if name == "uniform" else " above 0"
        raise BadInput(f"{place_of}: {name} needs two numbers{above}, the smaller one first")
    value = low + place * (high - low) if name == "uniform" else low * (high / low) ** place
    return min(max(float(f"{value:.{_DIGITS}g}"), low), high)  # rounding must not leave the interval


def _uniform(stream: str, candidate: str, key: str) -> float:
    """Return the draw of a candidate's setting in [0, 1)."""
    digest = hashlib.sha256("/".join(filter(None, (stream, candidate, key))).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
