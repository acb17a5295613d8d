"""The workers of a sweep: processes, or the ranks of one launch, that run the cases they are handed.

A worker starts MPI once. Names of cases come on its rank 0's standard input, a line each; its end ends the
worker. (Numbers would be of other cases if the suite has changed since the sweep read it.) Into the file of
answers rank 0 writes ``NAME CODE`` when a case has ended, and ``NAME ROUND ROUNDS`` while it runs. A worker
goes on after a case that is complete, was refused or has diverged; any other end is its own, with the case's
exit code.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TextIO

from fedmpi.cli.plan import Planned
from fedmpi.cli.session import Session
from fedmpi.errors import BadInput, Interrupted
from fedmpi.visible import complain

_EVERY_S = 0.5
"""Least time between two answers about rounds."""
_PR_SET_PDEATHSIG = 1
_GRACE_S = 120.0
"""How long a case may take to finish its round once it was asked to stop."""

CASES = "cases"
"""File with the names of a sweep's cases, a line each."""

_NUMBERS = count()


class Worker:
    """A process group that runs one case after another, as the sweep sees it.

    Parameters
    ----------
    command : sequence of str
        What starts it, without the files of cases and answers.
    folder : Path
        Where the worker answers and what it prints between cases goes; `CASES` in it names the sweep's cases.

    Attributes
    ----------
    item : Planned or None
        The case that it runs.
    rounds : int
        What the case has finished.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        name = f"worker-{next(_NUMBERS)}"
        self._answers, self._log = folder / f"{name}.answers", folder / f"{name}.log"
        self._answers.touch()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--answers", str(self._answers), "--cases", str(folder / CASES)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=partial(_end_with_parent, os.getpid()),
            )
        assert self._process.stdin is not None
        self._names = self._process.stdin
        self.item: Planned | None = None
        self.rounds, self._started = 0, 0.0
        self._asked: float | None = None
        self._read = self._size_before = 0
        self._code: int | None = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def wrote_nothing(self, item: Planned) -> bool:
        """Whether the case that ended has no event that it did not have when the worker took it."""
        return _size(item) == self._size_before

    def take(self, item: Planned) -> None:
        """Hand out a case."""
        item.folder.mkdir(parents=True, exist_ok=True)
        with (item.folder / "log.txt").open("a") as log:
            log.write(f"--- {time.strftime('%Y-%m-%d %H:%M:%S')}{_job()}\n")
        self._size_before = _size(item)
        self.item, self.rounds, self._started = item, 0, time.monotonic()
        with suppress(OSError, ValueError):  # it has ended or was dismissed, which `ended` will find
            self._names.write(f"{item.checked.case.name}\n".encode())
            self._names.flush()

    def dismiss(self) -> None:
        """Say that there are no more cases."""
        with suppress(OSError):
            self._names.close()

    def ask_to_stop(self) -> None:
        """Have the case finish its round and write a checkpoint (USR1 reaches the ranks under both MPIs)."""
        if self.alive and self._asked is None:
            self._process.send_signal(signal.SIGUSR1)
            self._asked = time.monotonic()
            self.dismiss()

    def kill(self) -> None:
        """End the whole process group at once."""
        if self.alive:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _read_answers(self) -> None:
        """Take in what the worker said since it was last asked: rounds, and how a case ended."""
        with self._answers.open() as answers:
            answers.seek(self._read)
            text = answers.read()
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole)
        for _, first, *others in map(str.split, whole.splitlines()):
            if others:
                self.rounds = int(first)
            else:
                self._code = int(first)

    def ended(self) -> tuple[Planned, int, float] | None:
        """Return the case that ended, its exit code and seconds; None while it runs or there is none."""
        if self._asked is not None and time.monotonic() - self._asked > _GRACE_S:
            self.kill()
        alive = self.alive
        self._read_answers()
        code, item = self._code, self.item
        if code is None and not alive:
            code = self._process.returncode
            if self._asked is not None and code in (-signal.SIGUSR1, 128 + signal.SIGUSR1):
                code = Interrupted.exit_code  # asked before it could listen: nothing was begun
            self.dismiss()
            if item is not None:  # what launcher and ranks said outside of cases
                with (item.folder / "log.txt").open("ab") as log:
                    log.write(self._log.read_bytes())
        if code is None or item is None:
            return None
        self.item = self._code = None
        return item, code, time.monotonic() - self._started


def _end_with_parent(sweep: int) -> None:
    """Have the kernel ask this process to finish its round when the sweep itself is killed (Linux).

    Runs between fork and exec: a sweep that was killed before that is not noticed by the kernel any more.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != sweep:
        os._exit(Interrupted.exit_code)


def _job() -> str:
    """Return the number of Slurm's job or task that this sweep is in, as words; empty outside of one."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    job = f"{array}_{task}" if array else os.environ.get("SLURM_JOB_ID")
    return f", job {job}" if job else ""


def _size(item: Planned) -> int:
    """Return the bytes of events that a case has."""
    events = item.folder / "events.jsonl"
    return events.stat().st_size if events.exists() else 0


def run_handed_out(plan: Sequence[Planned], answers: Path, session: Session) -> int:
    """Run cases of a plan as they are handed out; what the ranks print goes into each case's ``log.txt``.

    Parameters
    ----------
    plan : sequence of Planned
        All cases that may be handed out.
    answers : Path
        File that rank 0 answers in; another rank's machine may lack its folder.
    session : Session
        A signal ends the worker with its case.
    """
    named, world = {item.checked.case.name: item for item in plan}, session.world
    with (answers if world.is_root else Path(os.devnull)).open("a", buffering=1) as answered:
        while name := world.agree(
            lambda: sys.stdin.readline().strip()
        ):  # empty: no case is left, or no sweep
            _write_into(named[name].folder / "log.txt")
            with suppress(
                OSError
            ):  # have the kernel count peak memory anew: earlier cases are not this one's
                Path("/proc/self/clear_refs").write_text("5")
            code = _run(named[name], session, answered)
            if world.is_root:
                answered.write(f"{name} {code}\n")
            gc.collect()
            gc.freeze()  # what lives now is modules and kernels: the next collection does not look at them
    return 0


def _run(item: Planned, session: Session, answered: TextIO) -> int:
    """Run a case; return 0, or the exit code of one that was refused or has diverged."""
    from fedmpi.cli.progress import Console
    from fedmpi.runs.reporting import RoundReport

    checked, world = item.checked, session.world

    class Told(Console):
        """A console that also tells the sweep how far the case is."""

        told = 0.0

        def round(self, report: RoundReport) -> None:
            super().round(report)
            if time.monotonic() - self.told > _EVERY_S:
                self.told = time.monotonic()
                answered.write(f"{checked.case.name} {report.round + 1} {checked.case.rounds}\n")

    try:
        return session.run(item, Told(sys.stdout), resume=True)
    except BadInput as error:
        if not error.agreed and world.size > 1:
            raise
        if world.is_root:
            complain(str(error))
        return error.exit_code


def _write_into(log: Path) -> None:
    """Send what this rank prints from now on to the end of a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    opened = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(opened, 1)
    os.dup2(opened, 2)
    os.close(opened)
