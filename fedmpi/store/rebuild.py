"""Makes `run.h5` again from `events.jsonl`, and where that is damaged `events.jsonl` from `run.h5`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fedmpi.errors import BadInput
from fedmpi.store import disk, events, exact, lines, runfile
from fedmpi.store.events import Attempt, Event, EventLog, Round, Start, Status
from fedmpi.store.reader import load_run, repair_hint
from fedmpi.store.runfile import RunFile
from fedmpi.store.schema import SCHEMA_VERSION


def repair(folder: Path) -> str:
    """Make a run's files whole and consistent again as far as one of them is; what is replaced is kept.

    A whole log is the truth: `run.h5` is made from it. Where the log is missing or damaged and `run.h5` is
    whole, the log is made from that. Where both are damaged, the log goes back to its last whole line.

    Returns
    -------
    str
        What was done, in a line.

    Raises
    ------
    BadInput
        Nothing of the run can be recovered.
    RunFailed
        A file could not be written; the old ones are untouched.
    """
    log_path = folder / events.NAME
    try:
        log = lines.read(log_path)
    except BadInput as error:
        whole, why = lines.whole_part(log_path), str(error)
    else:
        return f"{runfile.NAME} was rebuilt from the event log, {_write_file(folder, log)} rounds"
    try:
        log = _events_of(folder)
    except BadInput as other:
        if not whole:
            there = str(other).removesuffix(repair_hint(folder / runfile.NAME))
            raise BadInput(f"{why}; {there}: nothing can be recovered") from other
        _write_log(folder, whole)
        left = f"{_write_file(folder, whole)} of {events.start_of(whole).rounds} rounds"
        return f"both files were damaged and went back to {left}; --resume computes the others again"
    _write_log(folder, log)
    return f"{events.NAME} was rebuilt from {runfile.NAME}, {rounds_logged(log)} rounds"


def rebuild(folder: Path) -> int:
    """Write `run.h5` anew from the event log; a file already there is kept as `run.h5.damaged`.

    Returns
    -------
    int
        Number of rounds recovered.

    Raises
    ------
    BadInput
        The event log is missing or damaged before its end.
    RunFailed
        The new file could not be written; the old one is untouched.
    """
    return _write_file(folder, lines.read(folder / events.NAME))


def stored_config(folder: Path) -> dict[str, Any]:
    """Return the configuration of a run, from the log where the record cannot be read.

    Raises
    ------
    BadInput
        Neither can be read; the line is the record's.
    """
    try:
        return load_run(folder).config
    except BadInput:
        whole = lines.whole_part(folder / events.NAME)
        if not whole:
            raise
        return events.start_of(whole).config


def _write_file(folder: Path, log: Sequence[Event]) -> int:
    try:
        with (
            _made_anew(folder / runfile.NAME) as fresh,
            closing(RunFile.create(fresh, events.start_of(log))) as file,
        ):
            for event in log[1:]:
                file.apply(event)
            return file.rounds_completed
    except (ValueError, KeyError, TypeError) as error:  # names that no HDF5 file can have side by side
        raise BadInput(f"{folder / events.NAME}: no record can be made of it ({error})") from error


def _write_log(folder: Path, log: Sequence[Event]) -> None:
    with _made_anew(folder / events.NAME) as fresh, closing(EventLog(fresh)) as writer:
        for event in log:
            writer.append(event)
        writer.sync()


@contextmanager
def _made_anew(target: Path) -> Iterator[Path]:
    """Put what is written into the yielded file in the target's place; a file already there is kept."""
    fresh = target.with_name(f"{target.name}.rebuilt")
    fresh.unlink(missing_ok=True)
    try:
        yield fresh
        if os.path.lexists(target):
            os.replace(target, target.with_name(f"{target.name}.damaged"))
        os.replace(fresh, target)
        disk.sync(target.parent)
    except OSError as error:
        raise disk.failure(target, error) from error
    finally:
        fresh.unlink(missing_ok=True)


def _events_of(folder: Path) -> list[Event]:
    """Return the events of a whole record; the times at which rounds ended are in the log only."""
    run = load_run(folder)
    if run.schema_version != SCHEMA_VERSION:
        raise BadInput(f"{runfile.NAME} is of schema {run.schema_version}, which is read and not written on")
    with closing(RunFile.open(folder / runfile.NAME)) as file:
        extra, created, status = file.extra, file.created, file.status
    partition = {name: np.asarray(array) for name, array in run.partition.items()}
    about = (run.metrics, run.fedmpi_version, run.numerics_version, created)
    found: list[Event] = [Start(run.config, run.clients, run.rounds, partition, extra, *about)]
    for number, attempt in enumerate(run.attempts):
        found.append(
            Attempt(
                attempt.first_round, attempt.ranks, attempt.collectives, attempt.provenance, attempt.started
            )
        )
        for row in range(min(attempt.rounds_written, run.rounds_completed - attempt.first_round)):
            index = attempt.first_round + row
            results = {name: np.asarray(data[index]) for name, data in run.results.items()}
            measured = {name: np.asarray(data[row]) for name, data in attempt.measurements.items()}
            found.append(Round(index, results, measured, ""))
        if attempt.ended and number < len(run.attempts) - 1:
            found.append(Status("interrupted", "", attempt.ended))
    if status != "running":
        found.append(Status(status, run.reason, run.attempts[-1].ended if run.attempts else created))
    return found


def rounds_logged(log: Sequence[Event]) -> int:
    """Return how many rounds the log holds (a round computed twice counts once)."""
    return max((event.round + 1 for event in log if isinstance(event, Round)), default=0)


def last_attempt(log: Sequence[Event]) -> list[Round]:
    """Return the rounds that the newest attempt wrote."""
    rounds: list[Round] = []
    for event in log:
        if isinstance(event, Attempt):
            rounds = []
        elif isinstance(event, Round):
            rounds.append(event)
    return rounds


def open_if_whole(path: Path, log: Sequence[Event]) -> RunFile | None:
    """Return the open file, brought up to the log; None where only a rebuild can do that.

    Raises
    ------
    BadInput
        The log has fewer rounds than the file.
    """
    try:
        if load_run(path.parent).schema_version != SCHEMA_VERSION:
            return None
    except BadInput:
        return None
    file = RunFile.open(path)
    known, logged = file.rounds_completed, rounds_logged(log)
    if known > logged:
        file.close()
        raise BadInput(
            f"{path.parent}: {events.NAME} was cut, it holds {logged} rounds and {runfile.NAME} {known}; "
            "nothing was changed: restore it, or move the folder away and run again"
        )
    if file.attempts != sum(isinstance(event, Attempt) for event in log) or _differs(file, log, known):
        file.close()
        return None
    written = file.written_rounds
    for event in last_attempt(log):  # a kill may have hit between the log and the file
        if event.round >= written - 1:
            file.apply(event)
    file.write_out()
    return file


def _differs(file: RunFile, log: Sequence[Event], known: int) -> bool:
    """Return whether a recorded round's results are not those of the log: the file is another run's."""
    newest = {event.round: event for event in log if isinstance(event, Round) and event.round < known - 1}
    return any(
        exact.different(np.asarray(row), file.result_row(name, index)).any()
        for index, event in newest.items()
        for name, row in event.results.items()
    )
