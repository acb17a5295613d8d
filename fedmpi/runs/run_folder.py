"""The run folder: the record, written by rank 0, and checkpoints, written by every rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedmpi import NUMERICS_VERSION
from fedmpi.case.folders import holds_run, refuse_other_config
from fedmpi.case.schema import Case
from fedmpi.comm.collectives import NAMES
from fedmpi.comm.world import World
from fedmpi.errors import BadInput, FedmpiError, Interrupted, RankFailed, RunFailed
from fedmpi.programs.position import Position
from fedmpi.runs.checkpoints import Checkpoints, Saved
from fedmpi.runs.facts import Contents
from fedmpi.runs.fitting import refuse_unfit_server, refuse_unfit_states
from fedmpi.runs.reporting import RoundReport
from fedmpi.runs.rounds import Rounds
from fedmpi.schedules.recorded import Order
from fedmpi.store import arrivals, disk, embeddings, events, lock, runfile
from fedmpi.store.checkpoint import Meta, Unfit
from fedmpi.store.lock import FolderLock
from fedmpi.store.provenance import collect
from fedmpi.store.record import RunRecord
from fedmpi.store.transcript import Transcript

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Opening:
    """Where a run starts: its first round (0-based), and whether from a checkpoint.

    `fields` names those of the record beyond the common ones; `recorded` is how many rounds it already has.
    """

    first_round: int
    from_checkpoint: bool
    notice: str
    fields: frozenset[str] = frozenset()
    recorded: int = 0


class LockedFolder:
    """A run folder, locked, and its record.

    A process that was stopped for long may have lost the lock to another one. So it checks the lock before
    each write. Once the lock is lost it writes nothing more, also not when it closes the record.

    Raises
    ------
    BadInput
        On entry: another live process holds the folder, or it cannot be written.
    """

    def __init__(self, folder: Path, world: World, where: Position) -> None:
        self.path, self._world, self._where = folder, world, where
        self.lock = FolderLock(folder)
        self.record: RunRecord | None = None
        """The record that was made or opened in the folder."""
        self.given_up = False
        """Whether a failure in `writing`, which has been reported, ends the job."""

    def __enter__(self) -> Self:
        self.lock.__enter__()
        if self.lock.former_may_live:  # it may be stopped between its check and its write
            for name in (events.NAME, runfile.NAME):
                disk.detach(self.path / name)
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._close()
        finally:
            self.lock.__exit__(*error)

    @contextmanager
    def writing(self) -> Iterator[RunRecord]:
        """Return a context in which the folder may be written; what fails in it ends the whole job."""
        assert self.record is not None
        self._where.writing = True
        try:
            self.confirm()
            yield self.record
        except FedmpiError as error:
            self.given_up = True
            self._close(str(error))
            self._world.fail(error)
        finally:
            self._where.writing = False

    def confirm(self) -> None:
        """Raise RunFailed unless the folder is still this process's."""
        if self.lock.lost():
            raise _taken_over(self.path)

    def _close(self, failure: str = "") -> None:
        """Close the record, as failed if there is a reason; nothing is written where the lock is lost."""
        if self.record is None:
            return
        if self.lock.lost():
            self.record.silence()
        if failure:
            self.record.finish("failed", failure)
        self.record.close()


def _taken_over(folder: Path) -> RunFailed:
    """Return the error of a process whose folder is another's now."""
    return RunFailed(
        f"{folder} was taken over by another process while this one stood still, "
        "or its lock was removed; this one stops and writes nothing more there"
    )


class RunFolder:
    """The folder of a run, open for writing.

    A failure on one rank (disk full, replay mismatch) ends the whole job; the rounds recorded so far stay
    readable.

    Parameters
    ----------
    case : Case
    folder : Path
    world : World
    where : Position
    transcript : Transcript or None
        Of an audit; rank 0's is written with the rounds.
    """

    def __init__(
        self, case: Case, folder: Path, world: World, where: Position, transcript: Transcript | None
    ) -> None:
        self._case, self._folder, self._world, self._where = case, folder, world, where
        self._transcript = transcript
        self._stack = ExitStack()
        self._locked: LockedFolder | None = None
        self._held: LockedFolder | None = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
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

    def open(self, contents: Contents | None, *, resume: bool) -> Opening:
        """Lock the folder, create or reopen the record; every rank gets the same answer or error.

        The answer is the first round, or the last if there is nothing left to do. Rank 0 has the contents.
        """
        token, self._lock_text = self._world.agree(self._lock)
        self._checkpoints = Checkpoints(self._folder, self._world, token)
        self._checkpoints.open()
        return self._world.agree(lambda: self._open(contents, resume))

    def _lock(self) -> tuple[str, str]:
        self._locked = self._stack.enter_context(LockedFolder(self._folder, self._world, self._where))
        return self._locked.lock.token, self._locked.lock.text

    def _open(self, contents: Contents | None, resume: bool) -> Opening:
        held = self._locked
        assert held is not None and contents is not None
        if not holds_run(self._folder):
            config, rounds = self._case.config(), self._case.rounds
            held.record = RunRecord.create(self._folder, config=config, rounds=rounds, **vars(contents))
            self._held = held
            return Opening(0, False, "", frozenset(field.name for field in contents.extra))
        if not resume:
            raise BadInput(
                f"{self._folder} holds an unfinished run; add --resume to continue it, "
                "or choose another folder with --out"
            )
        record = held.record = RunRecord.reopen(self._folder)
        refuse_other_config(self._case, record.start.config, self._folder)
        if record.status == "complete":
            meanwhile = f"{self._folder}: another process completed it meanwhile"
            return Opening(self._case.rounds, False, record.notice or meanwhile)
        _refuse_other_data(record, contents.partition, self._folder)
        self._held = held
        further = frozenset(field.name for field in record.start.extra)
        return Opening(0, False, record.notice or "", further, record.rounds_completed)

    def find_checkpoint(self, rounds: Rounds) -> Saved | None:
        """Return the checkpoint that the run goes on from, if there is one (a collective call)."""

        def check(meta: Meta, server: Arrays) -> None:
            assert self._held is not None and self._held.record is not None
            record = self._held.record
            if meta != self._about(record, meta.rounds):
                raise Unfit("it is another run's")
            if meta.rounds > record.rounds_completed:
                raise Unfit("it is ahead of the record")
            refuse_unfit_server(server, rounds.server_state())

        def check_states(states: Mapping[int, npt.NDArray[np.float32]]) -> None:
            refuse_unfit_states(states, rounds.states.layouts())

        return self._checkpoints.find(len(rounds.names), list(rounds.clients), check, check_states)

    def _about(self, record: RunRecord, rounds: int) -> Meta:
        start = record.start
        return Meta(
            rounds=rounds,
            config_digest=self._case.digest(),
            numerics_version=start.numerics_version,
            begun=start.time,
        )

    def begin_attempt(self, first_round: int, facts: dict[str, Any], checkout: dict[str, Any]) -> None:
        """Record the start of this attempt, what is known of it, and the source's Git state."""
        if self._held is not None:
            if self._transcript is not None:
                self._transcript.begin(self._world.size, facts["rank_of_client"])
            provenance = collect(facts, checkout)
            with self._held.writing() as record:
                record.begin_attempt(first_round, self._world.size, NAMES, provenance)

    def write(self, report: RoundReport) -> None:
        """Record a round."""
        if self._held is not None:
            with self._held.writing() as record:
                record.write_round(report.round, report.results, report.measurements)
                if report.embeddings:
                    embeddings.save(self._folder, report.round + 1, report.embeddings)
                self._save_transcript()

    def _save_transcript(self) -> None:
        if self._transcript is not None:
            self._transcript.save(self._folder)

    def checkpoint(self, finished: int, rounds: Rounds) -> None:
        """Save all states as of `finished` rounds, each rank those of its clients (a collective call)."""
        states = rounds.states.saved()
        if self._held is None:
            self._checkpoints.gather(self._write_elsewhere(finished, states))
            return
        with self._held.writing():
            digest = self._checkpoints.write_states(finished, states)
        digests = self._checkpoints.gather(digest)
        assert digests is not None
        with self._held.writing() as record:
            record.sync()
            about, hosts = self._about(record, finished), rounds.states.hosts
            self._checkpoints.commit(about, digests, hosts, rounds.server_state(), self._held.confirm)

    def _write_elsewhere(self, finished: int, states: Mapping[int, npt.NDArray[np.float32]]) -> str:
        """Write the states of a rank that does not hold the folder; what fails ends the whole job."""
        self._where.writing = True
        try:
            if not lock.is_held(self._folder / lock.NAME, self._lock_text):
                raise _taken_over(self._folder)
            return self._checkpoints.write_states(finished, states)
        except RunFailed as error:
            self._world.fail(error)
        finally:
            self._where.writing = False

    def save_order(self, order: Order) -> None:
        """Save the order of the steps of a run by the real clock, as far as it is known; on rank 0."""
        assert self._held is not None
        with self._held.writing():
            arrivals.save(self._folder, vars(order), self._case.digest())

    def finish(self, status: str, reason: str = "") -> None:
        """Record how the run ended."""
        if self._held is not None:
            with self._held.writing() as record:
                self._save_transcript()
                record.finish(status, reason)
            if status == "complete" and self._case.checkpoints == "removed":
                self._checkpoints.remove()


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
