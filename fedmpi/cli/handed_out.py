"""What a worker of a sweep does: it starts MPI once and runs the cases that it is handed, one after another.

Names of cases come on rank 0's standard input, a line each; its end ends the worker. (Numbers would be of
other cases if the suite has changed since the sweep read it.) Into the file of answers rank 0 writes
``NAME CODE`` when a case has ended, and ``NAME ROUND ROUNDS`` while it runs. A worker goes on after a case
that is complete, was refused or has diverged; any other end is its own, with the case's exit code.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from fedmpi.cli.plan import Planned
from fedmpi.cli.session import Session
from fedmpi.errors import BadInput
from fedmpi.visible import complain

_EVERY_S = 0.5
"""Least time between two answers about rounds."""


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
        while name := world.agree(_next):
            item = named[name]
            _write_into(item.folder / "log.txt")
            _forget_peak_memory()

            def passed(rounds: int, name: str = name, of: int = item.checked.case.rounds) -> None:
                answered.write(f"{name} {rounds} {of}\n")

            code = _run(item, session, passed)
            if world.is_root:
                answered.write(f"{name} {code}\n")
            gc.collect()
            gc.freeze()  # what lives now is modules and kernels: the next collection does not look at them
    return 0


def _next() -> str:
    """Return the name of the next case; empty where there is none, or no sweep any more."""
    return sys.stdin.readline().strip()


def _run(item: Planned, session: Session, passed: Callable[[int], None]) -> int:
    """Run a case; return 0, or the exit code of one that was refused or has diverged."""
    from fedmpi.cli.progress import Console
    from fedmpi.runs.first_answers import refuse_unequal
    from fedmpi.runs.reporting import RoundReport

    class Told(Console):
        """A console that also tells the sweep how far the case is."""

        told = 0.0

        def round(self, report: RoundReport) -> None:
            super().round(report)
            if time.monotonic() - self.told > _EVERY_S:
                self.told = time.monotonic()
                passed(report.round + 1)

    checked, world = item.checked, session.world
    try:
        if checked.case.plugin:
            world.together(partial(refuse_unequal, checked.case, checked.algorithm))
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


def _forget_peak_memory() -> None:
    """Have the kernel count this process's peak memory anew: earlier cases are not this one's."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
