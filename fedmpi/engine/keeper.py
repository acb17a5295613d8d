"""Rank 0's hold on the run folder: lock, record, checkpoints. A no-op on the other ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi import NUMERICS_VERSION
from fedmpi.comm.world import World
from fedmpi.engine.case import Case
from fedmpi.engine.folders import holds_run, refuse_other_config
from fedmpi.engine.rounds import RoundReport, Rounds
from fedmpi.errors import BadInput, FedmpiError, RunFailed
from fedmpi.store import checkpoint, embeddings
from fedmpi.store.lock import FolderLock
from fedmpi.store.record import RunRecord
from fedmpi.store.schema import Field


@dataclass(frozen=True)
class Opening:
    """Where a run starts: its first round (0-based), and whether from a checkpoint."""

    first_round: int
    from_checkpoint: bool
    notice: str


class Keeper:
    """Writes what a run leaves behind.

    A failure here (disk full, replay mismatch) is rank 0's alone and ends the
    whole job; what was recorded so far stays readable.
    """

    def __init__(self, case: Case, folder: Path, world: World) -> None:
        self._case, self._folder, self._world = case, folder, world
        self._stack = ExitStack()
        self._record: RunRecord | None = None
        self._lock: FolderLock | None = None
        self.arrays: Mapping[str, npt.NDArray[Any]] | None = None
        """Arrays of the checkpoint that the run starts from; rank 0 only."""

    def __enter__(self) -> Keeper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, FedmpiError):
            self.finish("failed", f"{type(error).__name__}: {error}")
        self._stack.close()

    def open(
        self,
        clients: Sequence[str],
        partition: Mapping[str, npt.NDArray[Any]],
        fields: Sequence[Field],
        *,
        resume: bool,
    ) -> Opening:
        """Lock the folder and create or reopen the record; every rank gets the same answer or error.

        Parameters
        ----------
        clients : sequence of str
        partition : mapping
            Arrays that say who holds which data; only rank 0's are read.
        fields : sequence of Field
            Fields of the record beyond the common ones.
        """
        return self._world.agree(lambda: self._open(clients, partition, fields, resume))

    def _open(
        self,
        clients: Sequence[str],
        partition: Mapping[str, npt.NDArray[Any]],
        fields: Sequence[Field],
        resume: bool,
    ) -> Opening:
        self._lock = self._stack.enter_context(FolderLock(self._folder))
        if not holds_run(self._folder):
            self._record = RunRecord.create(
                self._folder,
                config=self._case.config(),
                clients=clients,
                rounds=self._case.rounds,
                partition=partition,
                extra=fields,
            )
            self._stack.callback(self._record.close)
            return Opening(0, False, "")
        if not resume:
            raise BadInput(
                f"{self._folder} holds an unfinished run; add --resume to continue it, "
                "or choose another folder with --out"
            )
        self._record = RunRecord.reopen(self._folder)
        self._stack.callback(self._record.close)
        refuse_other_config(self._case, self._record.start.config, self._folder)
        if self._record.status == "complete":
            return Opening(
                self._case.rounds, False, f"{self._folder}: another process completed it meanwhile"
            )
        _refuse_other_data(self._record, partition, self._folder)
        return self._find_checkpoint(self._record)

    def _find_checkpoint(self, record: RunRecord) -> Opening:
        notice = record.notice or ""
        saved = checkpoint.load(self._folder)
        if saved is None:
            return Opening(0, False, notice)
        meta, self.arrays = saved
        if meta["config_digest"] != self._case.digest():
            raise BadInput(f"{self._folder}: the checkpoint is another run's; remove it to start anew")
        if int(meta["rounds"]) > record.rounds_completed:
            self.arrays = None
            return Opening(0, False, f"{notice} the checkpoint is ahead of the record: starting anew".strip())
        return Opening(int(meta["rounds"]), True, notice)

    def begin_life(self, first_round: int, collectives: Sequence[str], provenance: dict[str, Any]) -> None:
        """Record who computes from here on."""
        if self._record is not None:
            with self._alone():
                self._record.begin_life(first_round, self._world.size, collectives, provenance)

    def write(self, report: RoundReport) -> None:
        """Record a round."""
        if self._record is not None:
            with self._alone():
                if self._lock is not None and self._lock.lost:
                    raise RunFailed(f"{self._folder} was taken over by another process; this one stops")
                self._record.write_round(report.round, report.results, report.measurements)
                if report.embeddings:
                    embeddings.save(self._folder, report.round + 1, report.embeddings)

    def checkpoint(self, finished: int, rounds: Rounds) -> None:
        """Gather all states and save them as of `finished` rounds (a collective call)."""
        arrays = rounds.states.gather()
        if arrays is not None and self._record is not None:
            with self._alone():
                self._record.sync()
                meta = {"rounds": finished, "config_digest": self._case.digest()}
                checkpoint.save(self._folder, meta, {**arrays, **rounds.server_state()})

    def finish(self, status: str, reason: str = "") -> None:
        """Record how the run ended."""
        if self._record is not None:
            with self._alone():
                self._record.finish(status, reason)

    def _alone(self) -> _EndsTheJob:
        return _EndsTheJob(self._world, self._record)


def _refuse_other_data(record: RunRecord, partition: Mapping[str, npt.NDArray[Any]], folder: Path) -> None:
    """Raise BadInput unless data, partition and numerics are those that the run began with."""
    version, stored = record.start.numerics_version, record.start.partition
    if version != NUMERICS_VERSION:
        raise BadInput(
            f"{folder} was begun with numerics version {version}, this is {NUMERICS_VERSION}: "
            "its rounds would not fit together; choose another folder with --out"
        )
    for name, values in partition.items():
        if name not in stored or not np.array_equal(stored[name], values):
            raise BadInput(
                f"{folder}: partition/{name} is not what the run began with: the data have changed; "
                "choose another folder with --out"
            )


class _EndsTheJob:
    """Turns a failure of rank 0 alone into the end of the whole job."""

    def __init__(self, world: World, record: RunRecord | None) -> None:
        self._world, self._record = world, record

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, FedmpiError):
            if self._record is not None:
                self._record.finish("failed", str(error))
                self._record.close()
            self._world.fail(error)
