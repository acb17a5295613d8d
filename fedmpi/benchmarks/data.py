"""From raw files to packed clients: seconds and peak memory of each stage, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedmpi.benchmarks.samples import Measurement, Report, figures_of, listed
from fedmpi.case.schema import Case
from fedmpi.client.federation import assemble, load
from fedmpi.clock import Stopwatch
from fedmpi.config.suite import CaseSettings
from fedmpi.datasets import tu
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.graphs.packed import GraphSet
from fedmpi.graphs.refinement.quotient import quotient, refinements
from fedmpi.partition.partition import make
from fedmpi.registry.check import build

DEFAULT = ("PROTEINS", "NCI1", "gcfl/molecules")

_CLIENTS = 10
_DEPTH = 3


Stages = dict[str, dict[str, float]]
"""What each stage took, by name: seconds, and the largest resident memory of its process until its end."""

Piece = Callable[[Case, DataSource], Iterator[str]]
"""Does one stage after another and yields the name of each at its end."""


def measure(names: Sequence[str], source: DataSource, repetitions: int) -> Report:
    """Prepare datasets from the mirror's archives.

    Three fresh processes: parse (text to arrays); prepare (the same, checked by its digest and written to an
    empty cache); clients: load (map the cache), partition (into 10 clients, of a group one per dataset), pack
    (every client's graphs as its training gets them). Their memory starts with the interpreter and what it
    has imported. There is no warm-up: archives and caches are read from memory if the system still has them.

    Raises
    ------
    BadInput
        There is no mirror, or it lacks a dataset.
    """
    for name in names:
        for member in source.members(name):
            _archive(source, member)
        _case(name, source)
    measurements, rows = [], {}
    for name in names:
        found, rows[name] = _measure(name, source, repetitions)
        measurements += found
    settings = {"datasets": list(names), "repetitions": repetitions, "warmup": 0}
    statements = listed(map(_statement, measurements)) + [_rows_statement(*each) for each in rows.items()]
    return Report("data", settings, measurements, {"rows": rows}, statements)


def _archive(source: DataSource, member: str) -> Path:
    if source.mirror is None:
        raise BadInput("bench data reads archives from a mirror: give --mirror or FEDMPI_MIRROR")
    path = source.mirror / "tudataset" / f"{member}.zip"
    if not path.is_file():
        raise BadInput(f"{path}: no such archive; 'fedmpi data list' shows what is at hand")
    return path


def _case(name: str, source: DataSource) -> Case:
    members = source.members(name)
    if not members:
        raise BadInput(f"dataset {name} has no files; name TU datasets or groups")
    partition = {"name": "per-dataset"} if len(members) > 1 else {"name": "chunks", "clients": _CLIENTS}
    return build("bench", CaseSettings("data", {"dataset": name, "partition": partition})).case


def _measure(
    name: str, source: DataSource, repetitions: int
) -> tuple[list[Measurement], dict[str, list[float]]]:
    """Repeat all stages of a dataset; every submitted piece gets a fresh interpreter."""
    taken: dict[tuple[str, str], list[dict[str, float]]] = {}
    rows: dict[str, list[float]] = {}
    pieces = {"parse": _parse, "prepare": _prepare, "clients": _clients}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn, max_tasks_per_child=1) as fresh:
        for _ in range(repetitions):
            with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as folder:
                empty = replace(source, cache=Path(folder))
                for process, piece in pieces.items():
                    for stage, row in fresh.submit(_taken, piece, name, empty).result().items():
                        taken.setdefault((process, stage), []).append(row)
                if not rows:
                    rows = fresh.submit(_rows, name, empty).result()
    found = [
        Measurement({"dataset": name, "process": process, "stage": stage}, figures_of(each))
        for (process, stage), each in taken.items()
    ]
    return found, rows


def _taken(piece: Piece, name: str, source: DataSource) -> Stages:
    """Return what the stages of a piece take in this process; memory counts from where the first began."""
    case, found = _case(name, source), {}
    start, watch = peak_bytes(), Stopwatch()
    for stage in piece(case, source):
        seconds, peak = {"wall_seconds": watch.wall, "cpu_seconds": watch.cpu}, peak_bytes()
        found[stage] = {**seconds, "peak_bytes": peak, "added_bytes": peak - start}
        watch.restart()
    return found


def _parse(case: Case, source: DataSource) -> Iterator[str]:
    for member in source.members(case.dataset.name):
        tu.read_archive(_archive(source, member), member, member)
    yield "parse"


def _prepare(case: Case, source: DataSource) -> Iterator[str]:
    source.prepare(case.dataset.name)
    yield "prepare"


def _clients(case: Case, source: DataSource) -> Iterator[str]:
    raws = load(case, source)
    yield "load"
    partition = make(case.partition, raws)
    yield "partition"
    federation = assemble(case, raws, partition, source.cache)
    held = [federation.data(case, client) for client in range(federation.num_clients)]
    yield "pack"
    assert len(held) == len(partition.clients)  # and so lived until its memory was read


def _rows(name: str, source: DataSource) -> dict[str, list[float]]:
    """Return which shares of clients' nodes, and of the terms of their sums, the compiled kernels compute.

    In training: in the first layer, and in others after equal neighbourhoods are merged, with the terms that
    these sum up. In evaluation: in layers 1, 2, 3.
    """
    case = _case(name, source)
    raws = load(case, source)
    federation = assemble(case, raws, make(case.partition, raws), source.cache)
    counts = [_counts(*federation.data(case, client)) for client in range(federation.num_clients)]
    trained, evaluated = (np.sum(parts, axis=0) for parts in zip(*counts, strict=True))
    nodes, terms, *computed = trained.tolist()
    shares = [computed[0] / nodes, computed[1] / nodes, computed[2] / terms]
    return {"training": shares, "evaluation": (evaluated[1:] / evaluated[0]).tolist()}


def _counts(train: GraphSet, held_out: GraphSet) -> tuple[list[int], list[int]]:
    """Return of a client nodes and terms of sums, and what is computed of them; nodes and rows by layer."""
    twins, topology = quotient(train), train.topology
    of_training = [topology.num_nodes, topology.num_nodes + len(topology.columns)]
    of_training += [len(twins.first.pointers) - 1, twins.num_rows, len(twins.closed.columns)]
    alike = refinements(held_out.topology, held_out.node_row, _DEPTH)
    return of_training, [held_out.topology.num_nodes, *(each.count for each in alike)]


def _rows_statement(name: str, rows: dict[str, list[float]]) -> str:
    first, others, terms = (f"{100 * share:.1f} %" for share in rows["training"])
    layers = ", ".join(f"{100 * share:.1f}" for share in rows["evaluation"])
    return (
        f"{name}, rows of the kernels: in training {first} of the nodes in the first layer, {others} in "
        f"others, with {terms} of the terms of their sums; in evaluation {layers} % in layers 1 to {_DEPTH}"
    )


def peak_bytes() -> int:
    """Return the largest resident memory of this process (Linux).

    Not `getrusage`: there a fresh interpreter starts with the peak of the process that started it.
    """
    text = Path(f"/proc/{os.getpid()}/status").read_text()
    line = next(line for line in text.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def _statement(found: Measurement) -> tuple[str, str]:
    seconds, peak = (found.figures[name].median for name in ("wall_seconds", "peak_bytes"))
    return f"{found.labels['dataset']}:", f"{found.labels['stage']} {seconds:.2f} s ({peak / 1e6:.0f} MB)"
