"""Whether two runs computed the same, bit for bit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedmpi.store import exact
from fedmpi.store.reader import Run, load_run
from fedmpi.store.schema import Array, config_differences


@dataclass(frozen=True)
class Comparison:
    """What was compared, and one line for each thing that differs."""

    datasets: int
    rounds: int
    differences: tuple[str, ...]


def differences(first: Path, second: Path) -> list[str]:
    """Return one line for each thing in which the results of two runs differ; none if identical."""
    return list(compare(first, second).differences)


def compare(first: Path, second: Path) -> Comparison:
    """Compare configuration, versions, clients, partition and all results of two runs.

    Measurements are not compared. NaN equals NaN; 0.0 differs from -0.0.

    Raises
    ------
    BadInput
        One of them cannot be read.
    """
    a, b = load_run(first), load_run(second)
    lines = _header(a, b)
    partition = _arrays("partition", a.partition, b.partition, None)
    rounds = min(a.rounds_completed, b.rounds_completed)
    cut = [{name: data[:rounds] for name, data in run.results.items()} for run in (a, b)]
    results = _arrays("rounds", cut[0], cut[1], {"": a.clients, "test_correct": _owners(a)})
    count = len({*a.partition, *b.partition}) + len({*a.results, *b.results}) + 1
    return Comparison(count, rounds, (*lines, *partition, *results))


def results_digest(run: Run) -> str:
    """Return the SHA-256 of a run's partition and results: equal for runs that computed the same bits.

    Names, types and shapes count, measurements do not. NaNs are equal where their bits are.
    """
    return _digest(run.partition, run.results)


def rounds_digest(run: Run) -> str:
    """Return the SHA-256 of a run's clients, losses, scores and parameters after every round.

    Equal for runs that trained the same models, whatever their algorithms count beside.
    """
    scores = [metric.field(part) for metric in run.metrics for part in metric.parts]
    names = {"parameter_digest", *scores, *(name for name in run.results if name.endswith("_loss"))}
    return _digest(run.partition, {name: run.results[name] for name in names & run.results.keys()})


def _digest(*groups: Mapping[str, Array]) -> str:
    """Return the SHA-256 of arrays: names, types, shapes and bits."""
    state = hashlib.sha256()
    for group in groups:
        for name in sorted(group):
            values = np.asarray(group[name])
            content = repr(values.tolist()).encode() if values.dtype.kind in "OSU" else values.tobytes()
            state.update(f"{name} {values.dtype.kind}{values.dtype.itemsize} {values.shape}\n".encode())
            state.update(content)
    return state.hexdigest()


def _header(a: Run, b: Run) -> list[str]:
    lines: list[str] = []
    if a.config_digest != b.config_digest:
        lines += [f"config {line}" for line in config_differences(a.config, b.config)]
    for name in ("numerics_version", "rounds_completed"):
        left, right = getattr(a, name), getattr(b, name)
        if left != right:
            lines.append(f"{name}: {left} -> {right}")
    if a.clients != b.clients:
        lines.append(f"clients: {', '.join(a.clients)} -> {', '.join(b.clients)}")
    return lines


def _arrays(
    group: str,
    left: Mapping[str, Array],
    right: Mapping[str, Array],
    owners: Mapping[str, tuple[str, ...]] | None,
) -> list[str]:
    """Return a line per array that differs; `owners`: an array's clients, "" for most."""
    lines: list[str] = []
    for name in sorted({*left, *right}):
        if name not in left or name not in right:
            lines.append(f"/{group}/{name}: only in the {'first' if name in left else 'second'}")
        else:
            clients = None if owners is None else owners.get(name, owners[""])
            if line := _difference(left[name], right[name], clients):
                lines.append(f"/{group}/{name}: {line}")
    return lines


def _owners(run: Run) -> tuple[str, ...]:
    """Return the client of every test graph."""
    pointers = run.partition.get("test_ptr", np.zeros(len(run.clients) + 1, np.int64))
    return tuple(np.repeat(run.clients, np.diff(pointers)).tolist())


def _difference(a: Array, b: Array, clients: tuple[str, ...] | None) -> str:
    if a.shape != b.shape:
        return f"shape {a.shape} -> {b.shape}"
    if a.dtype != b.dtype and a.dtype.kind != "U":
        return f"type {a.dtype} -> {b.dtype}"
    unequal = exact.different(a, b)
    if not unequal.any():
        return ""
    where = tuple(int(part) for part in np.argwhere(unequal)[0])
    place = f"at {list(where)}"
    if clients is not None:
        client = f", client {clients[where[1]]}" if len(where) > 1 else ""
        place = f"in round {where[0] + 1}{client}"
    return f"{a[where]} -> {b[where]} {place} ({int(unequal.sum())} of {a.size} values differ)"
