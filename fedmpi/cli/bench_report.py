"""How a benchmark's report is shown: a table and what it says, or one JSON object."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from fedmpi.analysis.stored import commit
from fedmpi.benchmarks.samples import Report, Samples
from fedmpi.cli.terminal import console, print_json
from fedmpi.tables.table import Entry, Table, listed

_UNITS = {
    "s": (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)),
    "B": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)),
}
"""Units for the reader by the figure's own unit, largest first."""


def show(report: Report, as_json: bool, provenance: dict[str, Any]) -> None:
    """Print a report; as JSON with all samples and the provenance."""
    if as_json:
        print_json({**report.record(), "provenance": provenance})
        return
    screen = console(sys.stdout)
    screen.print(_table(report))
    for statement in report.statements:
        screen.print(statement, soft_wrap=True)
    screen.print(_origin(provenance), soft_wrap=True)


def _table(report: Report) -> Table[Sequence[object]]:
    """Return a line per figure: what was measured, and the figure's median, minimum and maximum."""
    labels = list(dict.fromkeys(name for each in report.measurements for name in each.labels))
    rows: list[list[object]] = []
    for each in report.measurements:
        named = [each.labels.get(label, "") for label in labels]
        for figure, samples in each.figures.items():
            unit, scale = _readable(samples)
            values = (samples.median, samples.minimum, samples.maximum)
            shown = (Entry(f"{value / scale:.4g}", value) for value in values)
            rows.append([*map(str, named), figure, unit, *shown, len(samples.values)])
            named = [""] * len(labels)
    columns = listed([*labels, "figure", "unit", "median", "min", "max", "samples"])
    return Table(columns, rows, f"fedmpi bench {report.benchmark}")


def _readable(samples: Samples) -> tuple[str, float]:
    """Return a unit in which the largest sample has few digits, and its size in the figure's own unit."""
    for unit, scale in _UNITS.get(samples.unit, ()):
        if samples.maximum >= scale:
            return unit, scale
    return samples.unit, 1.0


def _origin(provenance: dict[str, Any]) -> str:
    versions = [f"{name} {found['version']}" for name, found in provenance["packages"].items()]
    cores = f"{len(provenance['affinity'])} of {provenance['cores']} cores"
    others = provenance.get("cores_of_others", 0)
    beside = f" ({others:g} of them busy with other programs: no quiet machine)" if others else ""
    made_by = commit(provenance, "no checkout", 12)
    return f"{provenance['cpu_model']}, {cores}{beside}; {made_by}; {', '.join(versions)}"
