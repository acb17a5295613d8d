"""Writing a round: the event log, the HDF5 file, both together as a run does it, and the checkpoint."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi import NUMERICS_VERSION
from fedmpi.benchmarks.samples import Measurement, Report, Samples, rates, repeat
from fedmpi.clock import utc_stamp
from fedmpi.errors import BadInput
from fedmpi.metrics.metric import ACCURACY
from fedmpi.store import checkpoint, events, runfile
from fedmpi.store.checkpoint import Manifest, Meta, Part
from fedmpi.store.events import Attempt, EventLog, Round, Start
from fedmpi.store.record import RunRecord
from fedmpi.store.runfile import RunFile
from fedmpi.store.schema import axis_sizes, measurement_fields, result_fields
from fedmpi.tasks.graph_classification import FIELDS

CLIENTS = (10, 100, 1000)

_RANKS = 3
_COLLECTIVES = ("Bcast", "Gatherv", "Reduce", "Scatterv", "Ibarrier")
_STATE_FLOATS = 3 * 29_506
"""A client's parameters and both moments: GCFL's GIN on PROTEINS."""

_HELD = 16
"""Rounds of a block: those of a second where a round takes 60 ms."""

_MOST_CHECKPOINTS = 5
"""Repetitions of a checkpoint at most: at 1000 clients each writes 354 MB."""

Rows = dict[str, npt.NDArray[Any]]


def measure(clients: Sequence[int], out: Path | None, repetitions: int, warmup: int) -> Report:
    """Write rounds of made-up numbers for several numbers of clients.

    Parameters
    ----------
    clients : sequence of int
    out : Path or None
        Folder on the file system to be measured; what is written in it is removed. None: where the
        system keeps temporary files.

    Raises
    ------
    BadInput
        The folder is missing or cannot be written.
    """
    measurements = []
    try:
        for number in clients:
            with tempfile.TemporaryDirectory(prefix="fedmpi-bench-", dir=out) as folder:
                measurements += _with_clients(Path(folder), number, repetitions, warmup)
    except OSError as error:
        place = out or tempfile.gettempdir()
        raise BadInput(f"cannot write in {place} ({error.strerror}); choose another --out") from error
    settings = {
        "clients": list(clients),
        "ranks": _RANKS,
        "folder": str(out or tempfile.gettempdir()),
        "repetitions": repetitions,
        "warmup": warmup,
    }
    return Report("record", settings, measurements, {}, [_statement(each) for each in measurements])


def _with_clients(folder: Path, clients: int, repetitions: int, warmup: int) -> list[Measurement]:
    rows = _rows(clients)
    names = tuple(f"client-{number:04d}" for number in range(clients))
    rounds = warmup + repetitions
    start = Start({}, names, rounds, {}, FIELDS, (ACCURACY,), "", 0, utc_stamp())
    attempt = Attempt(0, _RANKS, _COLLECTIVES, {}, utc_stamp())
    parts = {
        "events": _events(folder / events.NAME, start, attempt, rows, repetitions, warmup),
        "hdf5": _hdf5(folder / runfile.NAME, start, attempt, rows, repetitions, warmup),
        "record": _record(folder / "record", names, rows, repetitions, warmup, 1),
        f"record by {_HELD}": _record(folder / "held", names, rows, repetitions, warmup, _HELD),
        "checkpoint": _checkpoint(folder, clients, repetitions),
    }
    return [Measurement({"part": part, "clients": clients}, figures) for part, figures in parts.items()]


def _rows(clients: int) -> tuple[Rows, Rows]:
    """Return one round's results and measurements: random numbers, whose text has its usual length."""
    draw = np.random.default_rng(0)
    sizes = axis_sizes(clients, _RANKS, len(_COLLECTIVES))

    def filled(fields: dict[str, Any]) -> Rows:
        return {
            name: draw.random(field.shape(sizes)).astype(field.dtype)
            if field.dtype.startswith("f")
            else draw.integers(0, 2, field.shape(sizes)).astype(field.dtype)
            for name, field in fields.items()
        }

    return filled(result_fields(FIELDS)), filled(measurement_fields())


def _figures(seconds: Samples, num_bytes: Sequence[float]) -> dict[str, Samples]:
    return {
        "seconds": seconds,
        "rounds_per_second": rates("1/s", [1.0] * len(seconds.values), seconds),
        "round_bytes": Samples.of("B", num_bytes),
    }


def _events(
    path: Path, start: Start, attempt: Attempt, rows: tuple[Rows, Rows], repetitions: int, warmup: int
) -> dict[str, Samples]:
    log, lengths, index = EventLog(path), [], iter(range(start.rounds))
    log.append(start)
    log.append(attempt)

    def write() -> None:
        before = path.stat().st_size
        log.append(Round(next(index), *rows, utc_stamp()))
        lengths.append(path.stat().st_size - before)

    seconds = repeat(write, warmup, repetitions)
    log.close()
    return _figures(seconds, lengths[warmup:])


def _hdf5(
    path: Path, start: Start, attempt: Attempt, rows: tuple[Rows, Rows], repetitions: int, warmup: int
) -> dict[str, Samples]:
    file, index = RunFile.create(path, start), iter(range(start.rounds))
    file.reserve_attempt(attempt)
    file.apply(attempt)

    def write() -> None:
        file.apply(Round(next(index), *rows, utc_stamp()))
        file.write_out()

    seconds = repeat(write, warmup, repetitions)
    file.close()
    size = sum(row.nbytes for part in rows for row in part.values())
    return _figures(seconds, [size] * repetitions)


def _record(
    folder: Path, names: Sequence[str], rows: tuple[Rows, Rows], repetitions: int, warmup: int, held: int
) -> dict[str, Samples]:
    """Write through `RunRecord`, `held` rounds a block: log, file, and the checks of every row."""
    rounds = held * (warmup + repetitions)
    index = iter(range(rounds))
    with RunRecord.create(
        folder, config={}, clients=names, rounds=rounds, partition={}, extra=FIELDS
    ) as record:
        record.begin_attempt(0, _RANKS, _COLLECTIVES, {})
        log = folder / events.NAME
        before = log.stat().st_size

        def write() -> None:
            for _ in range(held):
                record.write_round(next(index), *rows)
            record.write_out()

        whole = repeat(write, warmup, repetitions)
        seconds = Samples.of("s", [value / held for value in whole.values])
        logged = (log.stat().st_size - before) / rounds
        record.finish("complete")
    size = logged + sum(row.nbytes for part in rows for row in part.values())
    return _figures(seconds, [size] * repetitions)


def _checkpoint(folder: Path, clients: int, repetitions: int) -> dict[str, Samples]:
    """Save the states of all clients as one rank does; the last two checkpoints stay, as in a run."""
    states = np.random.default_rng(0).random(clients * _STATE_FLOATS, np.float32)
    arrays = {"states": states, "sizes": np.full(clients, _STATE_FLOATS)}
    about = Meta(rounds=1, config_digest="0" * 64, numerics_version=NUMERICS_VERSION, begun="")
    everybody, place = list(range(clients)), folder / checkpoint.FOLDER
    server, attempts = {"group": np.zeros(clients, np.int64)}, itertools.count()
    place.mkdir()

    def save() -> None:
        token = f"{next(attempts):08x}"
        files = [place / checkpoint.file_name(token, 1, rank) for rank in (0, None)]
        states = Part(file=files[0].name, sha256=checkpoint.write(files[0], arrays), clients=everybody)
        own = Part(file=files[1].name, sha256=checkpoint.write(files[1], server))
        checkpoint.save(place, Manifest(meta=about, server=own, parts=[states]))

    count = min(repetitions, _MOST_CHECKPOINTS)
    seconds = repeat(save, 1, count)
    size = max(path.stat().st_size for path in place.iterdir())
    return {
        "seconds": seconds,
        "checkpoint_bytes": Samples.of("B", [size] * count),
        "rate": rates("GB/s", [size / 1e9] * count, seconds),
    }


def _statement(found: Measurement) -> str:
    part, clients = found.labels["part"], found.labels["clients"]
    milliseconds = 1e3 * found.figures["seconds"].median
    size = found.figures["checkpoint_bytes" if part == "checkpoint" else "round_bytes"].median
    return f"{part}, {clients} clients: {milliseconds:.2f} ms, {size / 1e3:.1f} kB"
