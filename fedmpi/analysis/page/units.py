"""Seconds and megabytes as people say them: 350 ms, 2.5 h, 1.20 GB."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from fedmpi.tables.table import NONE, Column, Entry

Row = TypeVar("Row")

Unit = tuple[str, float]
"""A name, and how much of the base unit it is."""

SECONDS: Sequence[Unit] = (("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86400.0))
PERCENT: Sequence[Unit] = (("%", 1.0),)
JOULES: Sequence[Unit] = (("J", 1.0), ("kJ", 1e3), ("MJ", 1e6), ("GJ", 1e9))
MEGABYTES: Sequence[Unit] = (("B", 1e-6), ("kB", 1e-3), ("MB", 1.0), ("GB", 1e3), ("TB", 1e6))


def unit_of(value: float, units: Sequence[Unit]) -> Unit:
    """Return the largest unit of which a value has at least one; the first for less."""
    return next((unit for unit in reversed(units) if value >= unit[1]), units[0])


def human(value: float, units: Sequence[Unit]) -> str:
    """Return a value of the base unit with three digits and its unit; a dash for NaN."""
    if math.isnan(value):
        return NONE
    if value == 0:
        return "0"
    name, size = unit_of(value, units)
    digits = max(0, 2 - math.floor(math.log10(value / size)))
    return f"{value / size:,.{min(digits, 2)}f} {name}"


def measured(value: float, units: Sequence[Unit]) -> Entry:
    """Return the entry of a value, which is sorted by the base unit."""
    return Entry(human(value, units), "" if math.isnan(value) else value)


def amounts(title: str, value: Callable[[Row], float], units: Sequence[Unit], meaning: str) -> Column[Row]:
    """Return the column of values in human units, sorted by the base unit; for the page alone."""
    base = next(name for name, size in units if size == 1)
    return Column(title, lambda row: measured(value(row), units), meaning, unit=base)
