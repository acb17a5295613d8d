"""What rank 0 keeps of a run in its folder: record and checkpoints. A no-op on the other ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi import NUMERICS_VERSION
from fedmpi.case.folders import holds_run, refuse_other_config
from fedmpi.case.schema import Case
from fedmpi.comm.world import World
from fedmpi.engine.hold import HeldFolder
from fedmpi.engine.rounds import RoundReport, Rounds
from fedmpi.engine.whereabouts import Whereabouts
from fedmpi.errors import BadInput, FedmpiError, Interrupted, RankFailed
from fedmpi.metrics.metric import Metric
from fedmpi.store import checkpoint, embeddings
from fedmpi.store.checkpoint import Checkpoint, Meta, Unfit
from fedmpi.store.record import RunRecord
from fedmpi.store.schema import Field

Arrays = Mapping[str, npt.NDArray[Any]]


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

    def __init__(self, case: Case, folder: Path, world: World, where: Whereabouts) -> None:
        self._case, self._folder, self._world, self._where = case, folder, world, where
        self._stack = ExitStack()
        self._held: HeldFolder | None = None
        self.arrays: Arrays | None = None
        """Arrays of the checkpoint that the run starts from; rank 0 only."""

    def __enter__(self) -> Keeper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None and self._held is not None and not self._held.given_up:
                self._finish_after(error)
        finally:
            self._stack.close()

    def _finish_after(self, error: BaseException) -> None:
        """Record an end that has not been recorded where it was decided."""
        if isinstance(error, Interrupted | RankFailed) and error.exit_code == Interrupted.exit_code:
            if not error.agreed:
                self.finish("interrupted", str(error))
        elif isinstance(error, RankFailed):
            self.finish("failed", str(error))
        elif not isinstance(error, FedmpiError):
            self.finish("failed", f"{type(error).__name__}: {error}")

    def open(
        self,
        clients: Sequence[str],
        partition: Arrays,
        fields: Sequence[Field],
        metrics: Sequence[Metric],
        *,
        resume: bool,
    ) -> Opening:
        """Lock the folder and create or reopen the record; every rank gets the same answer or error.

        The answer is the first round, or the last if there is nothing left to do.

        Parameters
        ----------
        clients : sequence of str
        partition : mapping
            Arrays that say who holds which data; only rank 0's are read.
        fields : sequence of Field
            Fields of the record beyond the common ones.
        metrics : sequence of Metric
            By which the run is judged.
        """
        return self._world.agree(lambda: self._open(clients, partition, fields, metrics, resume))

    def _open(
        self,
        clients: Sequence[str],
        partition: Arrays,
        fields: Sequence[Field],
        metrics: Sequence[Metric],
        resume: bool,
    ) -> Opening:
        held = self._stack.enter_context(HeldFolder(self._folder, self._world, self._where))
        if not holds_run(self._folder):
            held.record = RunRecord.create(
                self._folder,
                config=self._case.config(),
                clients=clients,
                rounds=self._case.rounds,
                partition=partition,
                extra=fields,
                metrics=metrics,
            )
            self._held = held
            return Opening(0, False, "")
        if not resume:
            raise BadInput(
                f"{self._folder} holds an unfinished run; add --resume to continue it, "
                "or choose another folder with --out"
            )
        held.record = record = RunRecord.reopen(self._folder)
        refuse_other_config(self._case, record.start.config, self._folder)
        if record.status == "complete":
            meanwhile = f"{self._folder}: another process completed it meanwhile"
            return Opening(self._case.rounds, False, record.notice or meanwhile)
        _refuse_other_data(record, partition, self._folder)
        self._held = held
        return Opening(0, False, record.notice or "")

    def find_checkpoint(self, opening: Opening, refuse_unfit: Callable[[Arrays], None]) -> Opening:
        """Return where the run goes on; every rank gets the same answer.

        Parameters
        ----------
        opening : Opening
            What `open` returned.
        refuse_unfit : callable
            Raises Unfit for arrays that the run cannot start from; called on rank 0.
        """
        return self._world.agree(lambda: self._find_checkpoint(opening, refuse_unfit))

    def _find_checkpoint(self, opening: Opening, refuse_unfit: Callable[[Arrays], None]) -> Opening:
        assert self._held is not None
        record = self._held.record
        about = self._about(record, 1)

        def check(found: Checkpoint) -> None:
            if found.meta.model_copy(update={"rounds": about.rounds}) != about:
                raise Unfit("it is another run's")
            if found.meta.rounds > record.rounds_completed:
                raise Unfit("it is ahead of the record")
            refuse_unfit(found.arrays)

        saved = checkpoint.load(self._folder, check)
        if saved is None:
            return opening
        self.arrays = saved.arrays
        return Opening(saved.meta.rounds, True, opening.notice)

    def _about(self, record: RunRecord, rounds: int) -> Meta:
        start = record.start
        return Meta(
            rounds=rounds,
            config_digest=self._case.digest(),
            numerics_version=start.numerics_version,
            begun=start.time,
        )

    def begin_life(self, first_round: int, collectives: Sequence[str], provenance: dict[str, Any]) -> None:
        """Record who computes from here on."""
        if self._held is not None:
            with self._held.writing() as record:
                record.begin_life(first_round, self._world.size, collectives, provenance)

    def write(self, report: RoundReport) -> None:
        """Record a round."""
        if self._held is not None:
            with self._held.writing() as record:
                record.write_round(report.round, report.results, report.measurements)
                if report.embeddings:
                    embeddings.save(self._folder, report.round + 1, report.embeddings)

    def checkpoint(self, finished: int, rounds: Rounds) -> None:
        """Gather all states and save them as of `finished` rounds (a collective call)."""
        arrays = rounds.states.gather()
        if arrays is not None and self._held is not None:
            with self._held.writing() as record:
                record.sync()
                saved = Checkpoint(self._about(record, finished), {**arrays, **rounds.server_state()})
                checkpoint.save(self._folder, saved, self._held.confirm)

    def finish(self, status: str, reason: str = "") -> None:
        """Record how the run ended."""
        if self._held is not None:
            with self._held.writing() as record:
                record.finish(status, reason)


def _refuse_other_data(record: RunRecord, partition: Arrays, folder: Path) -> None:
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
