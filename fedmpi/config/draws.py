"""Random search: settings of a suite's cases that are drawn from stated distributions, evenly.

Bergstra and Bengio, "Random search for hyper-parameter optimization", JMLR 13, 2012. Candidates are elements
of a Halton sequence with random digits, as Bousquet et al. advise ("Critical hyper-parameters: no random, no
cry", arXiv:1706.03200, 2017). Each has the stated distributions, and together they leave no large part of
these without a candidate, as independent draws do by chance. Each setting has a prime of its own, first those
that all cases draw; so a second setting is spread evenly for each choice of the first.

A draw is a function of the candidate's number, of the setting's name and prime, and of the stream that a rule
may name. So a candidate has the same rate with all methods that draw rates from one distribution and stream,
and more candidates leave the earlier ones as they are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from fedmpi.config.tables import Settings, merge, nested
from fedmpi.errors import BadInput

AXIS = "draw"
"""The axis of a suite's candidates: draw1, draw2 and so on."""

DISTRIBUTIONS = ("log-uniform", "uniform", "choice")
_DIGITS = 5
"""Significant ones of a drawn number."""

_BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
"""Of the settings in their order; an eleventh begins again."""


def keys(path: Path, table: Settings) -> list[str]:
    """Return the settings, dotted, that a table draws.

    Raises
    ------
    BadInput
        A value is no distribution.
    """
    return [*_flat(path, table, "")]


def drawn(path: Path, table: Settings, stream: str, first: Sequence[str], candidate: str) -> Settings:
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
    first : sequence of str
        Settings that all cases draw: the first ones in order.
    candidate : str
        Its label.

    Raises
    ------
    BadInput
        A value is no distribution.
    """
    found: Settings = {}
    distributions = _flat(path, table, "")
    order = [*dict.fromkeys((*first, *distributions))]
    number = int(candidate.removeprefix(AXIS)) - 1
    for key, distribution in distributions.items():
        place = _place(stream, key, number, _BASES[order.index(key) % len(_BASES)])
        found = merge(found, nested(key, _value(path, key, distribution, place)))
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


def _place(stream: str, key: str, number: int, base: int) -> float:
    """Return an element of a setting's sequence, in [0, 1): the number's digits, exchanged, from the last."""
    place, weight = 0.0, 1.0
    for digits in _digits(stream, key, base):
        number, last = divmod(number, base)
        weight /= base
        place += weight * digits[last]
    return place


@cache
def _digits(stream: str, key: str, base: int) -> list[list[int]]:
    """Return what the digits of a base are exchanged for, a permutation by place, to 2^-40."""

    def rank(place: int, digit: int) -> bytes:
        return hashlib.sha256("/".join((stream, key, str(place), str(digit))).encode()).digest()

    places = math.ceil(40 / math.log2(base))
    return [sorted(range(base), key=partial(rank, place)) for place in range(places)]
