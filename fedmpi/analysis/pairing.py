"""Compares two runs, or two suites case by case."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fedmpi.analysis.discovery import folder_of, run_paths
from fedmpi.store import identical


@dataclass(frozen=True)
class Verdict:
    """Outcome of a comparison of one or more cases."""

    cases: int
    datasets: int
    rounds: int
    differences: tuple[str, ...]


def compare_identical(first: Path, second: Path) -> Verdict:
    """Compare all result datasets of two runs, or of two suites' cases paired by name.

    Raises
    ------
    BadInput
        One of them holds no run, or a record cannot be read.
    """
    left, right = _named(first), _named(second)
    if len(left) == len(right) == 1:  # two runs, whatever their names
        left, right = {".": next(iter(left.values()))}, {".": next(iter(right.values()))}
    lines = [f"case {name}: only in {first}" for name in sorted(set(left) - set(right))]
    lines += [f"case {name}: only in {second}" for name in sorted(set(right) - set(left))]
    shared = sorted(set(left) & set(right))
    datasets = rounds = 0
    for name in shared:
        result = identical.compare(left[name], right[name])
        datasets += result.datasets
        rounds += result.rounds
        prefix = "" if name == "." else f"case {name}: "
        lines += [f"{prefix}{line}" for line in result.differences]
    return Verdict(len(shared), datasets, rounds, tuple(lines))


def _named(path: Path) -> dict[str, Path]:
    """Return the runs by their place below `path`; "." where `path` is a run itself."""
    found, place = run_paths(path), folder_of(path)
    if found == [place]:
        return {".": place}
    return {run.relative_to(place).as_posix(): run for run in found}
