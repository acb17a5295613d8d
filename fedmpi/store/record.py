"""Writes the record of one run: every event to the log first, then into `run.h5` (rank 0 only)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedmpi import NUMERICS_VERSION, __version__
from fedmpi.clock import utc_stamp
from fedmpi.errors import BadInput, RunFailed
from fedmpi.metrics.metric import ACCURACY, Metric
from fedmpi.store import disk, events, exact, lines, rebuild, runfile
from fedmpi.store.events import Attempt, Event, EventLog, Round, Start, Status
from fedmpi.store.runfile import RunFile
from fedmpi.store.schema import STATUSES, Array, Field, measurement_fields, result_fields

_LOG = logging.getLogger(__name__)


class RunRecord:
    """The record of a run, open for writing; make one with `create` or `reopen`.

    Every number goes to the event log before it goes into the file, so whatever
    moment a kill hits, the log holds all finished rounds.
    """

    def __init__(
        self, folder: Path, start: Start, log: EventLog, file: RunFile, notice: str | None = None
    ) -> None:
        self.folder = folder
        self._start = start
        self.notice = notice
        self._log = log
        self._file = file
        self._results = result_fields(file.extra)
        self._measurements = measurement_fields(file.extra)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._given_up = False

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        config: Mapping[str, Any],
        clients: Sequence[str],
        rounds: int,
        partition: Mapping[str, npt.ArrayLike],
        extra: Sequence[Field] = (),
        metrics: Sequence[Metric] = (ACCURACY,),
    ) -> RunRecord:
        """Start a record in `folder`, which is made if needed and must hold none.

        Parameters
        ----------
        config : mapping
            JSON values only; what decides the results, so no output folder and no rank count.
        clients : sequence of str
            Their names, in client order.
        rounds : int
            Rounds planned.
        partition : mapping
            Integer, float or text arrays by name ("a/b" makes a group).
        extra : sequence of Field
            Fields beyond the schema's; their first axis is "round".
        metrics : sequence of Metric
            By which the run is judged; the headline first.

        Raises
        ------
        BadInput
            There is a record already, or the folder cannot be written.
        RunFailed
            The disk has no room for the whole record; nothing is left behind.
        """
        target, log_path = folder / runfile.NAME, folder / events.NAME
        if target.exists() or events.begun(log_path):
            raise BadInput(f"{folder} holds a run already; use --resume or choose another folder")
        arrays = {name: np.asarray(array) for name, array in partition.items()}
        about = (tuple(metrics), __version__, NUMERICS_VERSION, utc_stamp())
        start = Start(dict(config), tuple(clients), rounds, arrays, tuple(extra), *about)
        log = _new_log(log_path)
        try:
            log.append(start)
            return cls(folder, start, log, RunFile.create(target, start))
        except BaseException as error:
            log.close()
            for path in (log_path, target):
                path.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise disk.failure(folder, error) from error
            raise

    @classmethod
    def reopen(cls, folder: Path) -> RunRecord:
        """Open the record of `folder` to continue it.

        The event log is authoritative: where `run.h5` is missing, damaged or has
        other rounds, it is rebuilt from the log, and `notice` reports that.

        Raises
        ------
        BadInput
            The event log is missing or damaged.
        RunFailed
            A file cannot be written.
        """
        log = lines.read(folder / events.NAME)
        notice = None
        try:
            file = rebuild.open_if_whole(folder / runfile.NAME, log)
            if file is None:
                rounds = rebuild.rebuild(folder)
                notice = f"{folder / runfile.NAME} was rebuilt from {events.NAME}: {rounds} rounds"
                _LOG.warning(notice)
                file = RunFile.open(folder / runfile.NAME)
            return cls(folder, events.start_of(log), EventLog(folder / events.NAME), file, notice)
        except OSError as error:
            raise disk.failure(folder, error) from error

    @property
    def start(self) -> Start:
        """What the record was begun with: configuration, clients, partition, versions."""
        return self._start

    @property
    def status(self) -> str:
        """The status in the file."""
        return self._file.status

    @property
    def rounds_completed(self) -> int:
        """Rounds recorded without a gap, from the first."""
        return self._file.rounds_completed

    def begin_attempt(
        self, first_round: int, ranks: int, collectives: Sequence[str], provenance: Mapping[str, Any]
    ) -> None:
        """Record the start of an attempt.

        Parameters
        ----------
        first_round : int
            The first that it computes, 0-based.
        ranks : int
        collectives : sequence of str
            Names of those that are counted.
        provenance : mapping
            JSON values.

        Raises
        ------
        RunFailed
            Rounds before `first_round` are not in the record, or the disk is full.
        """
        self._refuse_gap(first_round)
        attempt = Attempt(first_round, ranks, tuple(collectives), dict(provenance), utc_stamp())
        with self._given_up_on_failure():
            self._file.reserve_attempt(attempt)
        self._write(attempt)
        sizes, fields = self._file.sizes, {**self._results, **self._measurements}
        self._shapes = {name: field.shape(sizes) for name, field in fields.items()}

    def write_round(
        self, index: int, results: Mapping[str, npt.ArrayLike], measurements: Mapping[str, npt.ArrayLike]
    ) -> None:
        """Record one finished round.

        Parameters
        ----------
        index : int
            The round, 0-based.
        results : mapping
            Every result field by name, shaped by its axes without "round".
        measurements : mapping
            Any measurement fields; the others stay unwritten.

        Raises
        ------
        RunFailed
            The round is recorded already and a result differs in any bit, a
            round before it is missing, or the disk is full.
        """
        self._refuse_gap(index)
        assert self._shapes and index >= self._file.first_round, "begin_attempt comes first"
        assert set(results) == set(self._results), set(results) ^ set(self._results)
        rows = {n: self._results[n].row(value, self._shapes[n]) for n, value in results.items()}
        measured = {n: self._measurements[n].row(value, self._shapes[n]) for n, value in measurements.items()}
        if index < self._file.rounds_completed:
            self._refuse_difference(index, rows)
        self._write(Round(index, rows, measured, utc_stamp()))

    def _refuse_gap(self, index: int) -> None:
        known = self._file.rounds_completed
        if index > known:
            raise RunFailed(
                f"{self.folder}: the record ends after {known} rounds, "
                f"so it cannot go on at round {index + 1}; remove the checkpoint to go on from the start"
            )

    def _refuse_difference(self, index: int, rows: Mapping[str, Array]) -> None:
        for name, row in rows.items():
            with self._given_up_on_failure():
                stored = self._file.result_row(name, index)
            unequal = np.argwhere(exact.different(row, stored))
            if len(unequal):
                where = tuple(int(part) for part in unequal[0])
                by_client = self._results[name].axes[1:2] == ("client",)
                client = f", client {where[0]} ({self._file.clients[where[0]]})" if by_client else ""
                raise RunFailed(
                    f"{self.folder}: round {index + 1}{client}: {name} is {row[where]}, was {stored[where]}: "
                    "recomputed round differs from the record: other processor or versions?"
                )

    def finish(self, status: str, reason: str = "") -> None:
        """Set the status; after a failed write this keeps the failure that is already set."""
        assert status in STATUSES, status
        if not self._given_up:
            self._write(Status(status, reason, utc_stamp()))

    def _write(self, event: Event) -> None:
        with self._given_up_on_failure():
            self._log.append(event)
            self._file.apply(event)

    @contextmanager
    def _given_up_on_failure(self) -> Iterator[None]:
        """Turn a failed write into RunFailed, and write that as the status wherever it can be written."""
        try:
            yield
        except OSError as error:
            self._given_up = True
            failure = disk.failure(self.folder, error)
            status = Status("failed", str(failure), utc_stamp())
            for destination in (self._file.apply, self._log.append):
                with suppress(OSError):
                    destination(status)
            raise failure from error

    def write_out(self) -> None:
        """Write into `run.h5` what only the log holds yet."""
        with self._given_up_on_failure():
            self._file.write_out()

    def sync(self) -> None:
        """Return when everything recorded is on disk; call it before saving a checkpoint.

        Then a crash of the machine cannot leave a checkpoint that is ahead of the record.
        """
        with self._given_up_on_failure():
            self._file.write_out()
            self._log.sync()
            disk.sync(self.folder / runfile.NAME)

    def silence(self) -> None:
        """Discard all later writes of this process: another one writes the files now."""
        self._given_up = True
        self._log.silence()
        self._file.silence()

    def close(self) -> None:
        """Close both files; closing twice is fine."""
        self._log.close()
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _new_log(path: Path) -> EventLog:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # of a process that died before its first line was whole
        return EventLog(path)
    except OSError as error:
        message = f"{path.parent}: cannot write there ({error.strerror}); choose another folder"
        raise BadInput(message) from error
