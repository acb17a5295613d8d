"""The workers of a sweep: processes, or the ranks of one launch, that run the cases they are handed."""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
import time
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

from fedmpi.cli.options import SweepOptions
from fedmpi.cli.plan import Planned
from fedmpi.comm.launch import launcher, python
from fedmpi.errors import Interrupted

_PR_SET_PDEATHSIG = 1
_GRACE_S = 120.0
"""How long a case may take to finish its round once it was asked to stop."""

CASES = "cases"
"""File with the names of a sweep's cases, a line each."""

_NUMBERS = count()


class Worker:
    """A process group that runs one case after another; see `fedmpi.cli.handed_out` for what is said.

    Parameters
    ----------
    suite : str
        Path of the suite.
    options : SweepOptions
    launch : str or None
        Command that starts the ranks, up to ``run``; None: mpiexec, or nothing for one rank.
    folder : Path
        Where the worker answers and what it prints between cases goes; `CASES` in it names the sweep's cases.

    Attributes
    ----------
    item : Planned or None
        The case that it runs.
    rounds : int
        What the case has finished.
    """

    def __init__(self, suite: str, options: SweepOptions, launch: str | None, folder: Path) -> None:
        name = f"worker-{next(_NUMBERS)}"
        self._answers, self._log = folder / f"{name}.answers", folder / f"{name}.log"
        self._answers.touch()
        command = [*_launch(launch, options.ranks), "run", suite, "--answers", str(self._answers)]
        command += ["--cases", str(folder / CASES), *_words(options)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
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
        for line in whole.splitlines():
            said = [int(word) for word in line.split()[1:]]
            if len(said) == 1:
                self._code = said[0]
            else:
                self.rounds = said[0]

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
            self._append_log()
        if code is None or item is None:
            return None
        self.item = self._code = None
        return item, code, time.monotonic() - self._started

    def _append_log(self) -> None:
        """Put what launcher and ranks said outside of cases into the log of the case that ended with them."""
        text = self._log.read_bytes()
        if self.item is not None and text:
            with (self.item.folder / "log.txt").open("ab") as log:
                log.write(text)


def _end_with_parent(sweep: int) -> None:
    """Have the kernel ask this process to finish its round when the sweep itself is killed (Linux).

    Runs between fork and exec: a sweep that was killed before that is not noticed by the kernel any more.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != sweep:
        os._exit(Interrupted.exit_code)


def last_line(folder: Path) -> str:
    """Return the last line that fedmpi ended with in a case's log; empty where there is none."""
    with suppress(OSError):
        lines = reversed((folder / "log.txt").read_text(errors="replace").split("\n"))
        return next((line.removeprefix("fedmpi: ") for line in lines if line.startswith("fedmpi: ")), "")
    return ""


def _launch(given: str | None, ranks: int) -> list[str]:
    """Return the command that starts the ranks of a worker, up to ``run``."""
    if given is not None:
        return shlex.split(given)
    return [*(launcher(ranks) if ranks > 1 else []), *python()]


def _job() -> str:
    """Return the number of Slurm's job or task that this sweep is in, as words; empty outside of one."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    job = f"{array}_{task}" if array else os.environ.get("SLURM_JOB_ID")
    return f", job {job}" if job else ""


def _size(item: Planned) -> int:
    """Return the bytes of events that a case has."""
    events = item.folder / "events.jsonl"
    return events.stat().st_size if events.exists() else 0


def _words(options: SweepOptions) -> list[str]:
    """Return the options that every worker gets."""
    given: list[tuple[str, str | Path | None]] = [
        *(("--set", each) for each in options.overrides),
        *(("--plugin", each) for each in options.plugins),
        *(("--out", options.out), ("--data", options.data), ("--mirror", options.mirror)),
    ]
    words = [word for flag, value in given if value is not None for word in (flag, str(value))]
    return ["--resume", *words, *(["--offline"] if options.offline else [])]
