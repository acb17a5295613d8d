"""Writing a round: the event log, the HDF5 file, both together as a run does it, and the checkpoint."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi import NUMERICS_VERSION
from fedmpi.benchmarks.samples import Measurement, Report, Samples, Turns, rates
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
Writer = tuple[Callable[[Round], None], Callable[[], None]]
"""What takes a round, and what writes out those that it has taken."""


def measure(clients: Sequence[int], out: Path | None, turns: Turns) -> Report:
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
                measurements += _with_clients(Path(folder), number, turns)
    except OSError as error:
        place = out or tempfile.gettempdir()
        raise BadInput(f"cannot write in {place} ({error.strerror}); choose another --out") from error
    settings = {"clients": list(clients), "ranks": _RANKS, "folder": str(out or tempfile.gettempdir())}
    return Report(
        "record", settings | vars(turns), measurements, {}, [_statement(each) for each in measurements]
    )


def _with_clients(folder: Path, clients: int, turns: Turns) -> list[Measurement]:
    rows = _rows(clients)
    parts = {
        "events": _written(_events, folder / "events", rows, turns),
        "hdf5": _written(_hdf5, folder / "hdf5", rows, turns),
        "record": _written(_record, folder / "record", rows, turns),
        f"record by {_HELD}": _written(_record, folder / "held", rows, turns, _HELD),
        "checkpoint": _checkpoint(folder / checkpoint.FOLDER, clients, turns.repetitions),
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


def _written(
    part: Callable[[Path, Start], AbstractContextManager[Writer]],
    folder: Path,
    rows: tuple[Rows, Rows],
    turns: Turns,
    held: int = 1,
) -> dict[str, Samples]:
    """Write blocks of `held` rounds by a part of the record; return seconds and bytes of a round."""
    names = tuple(f"client-{number:04d}" for number in range(len(rows[0]["participated"])))
    rounds = held * (turns.warmup + turns.repetitions)
    log, numbers = folder / events.NAME, iter(range(rounds))
    folder.mkdir()
    with part(folder, Start({}, names, rounds, {}, FIELDS, (ACCURACY,), "", 0, utc_stamp())) as writer:
        take, write_out = writer

        def block() -> None:
            for number in itertools.islice(numbers, held):
                take(Round(number, *rows, utc_stamp()))
            write_out()

        begun = log.stat().st_size if log.exists() else 0
        blocks = turns.seconds(block)
        logged = log.stat().st_size - begun if log.exists() else 0
    filed = sum(each.nbytes for kind in rows for each in kind.values()) if part is not _events else 0
    seconds = Samples.of("s", (block / held for block in blocks.values))
    return {
        "seconds": seconds,
        "rounds_per_second": rates("1/s", [1.0] * turns.repetitions, seconds),
        "round_bytes": Samples.of("B", [logged / rounds + filed] * turns.repetitions),
    }


_ATTEMPT = Attempt(0, _RANKS, _COLLECTIVES, {}, utc_stamp())


@contextmanager
def _events(folder: Path, start: Start) -> Iterator[Writer]:
    log = EventLog(folder / events.NAME)
    log.append(start)
    log.append(_ATTEMPT)
    yield log.append, lambda: None
    log.close()


@contextmanager
def _hdf5(folder: Path, start: Start) -> Iterator[Writer]:
    file = RunFile.create(folder / runfile.NAME, start)
    file.reserve_attempt(_ATTEMPT)
    file.apply(_ATTEMPT)
    yield file.apply, file.write_out
    file.close()


@contextmanager
def _record(folder: Path, start: Start) -> Iterator[Writer]:
    """Write through `RunRecord`: log, file, and the checks of every row."""
    names, rounds = start.clients, start.rounds
    with RunRecord.create(
        folder, config={}, clients=names, rounds=rounds, partition={}, extra=FIELDS
    ) as record:
        record.begin_attempt(0, _RANKS, _COLLECTIVES, {})
        yield lambda each: record.write_round(each.round, each.results, each.measurements), record.write_out
        record.finish("complete")


def _checkpoint(place: Path, clients: int, repetitions: int) -> dict[str, Samples]:
    """Save the states of all clients as one rank does; the last two checkpoints stay, as in a run."""
    states = np.random.default_rng(0).random(clients * _STATE_FLOATS, np.float32)
    arrays = {"states": states, "sizes": np.full(clients, _STATE_FLOATS)}
    about = Meta(rounds=1, config_digest="0" * 64, numerics_version=NUMERICS_VERSION, begun="")
    everybody, attempts = list(range(clients)), itertools.count()
    server = {"group": np.zeros(clients, np.int64)}
    place.mkdir()

    def save() -> None:
        token = f"{next(attempts):08x}"
        files = [place / checkpoint.file_name(token, 1, rank) for rank in (0, None)]
        states = Part(file=files[0].name, sha256=checkpoint.write(files[0], arrays), clients=everybody)
        own = Part(file=files[1].name, sha256=checkpoint.write(files[1], server))
        checkpoint.save(place, Manifest(meta=about, server=own, parts=[states]))

    count = min(repetitions, _MOST_CHECKPOINTS)
    seconds = Turns(count, 1).seconds(save)
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
