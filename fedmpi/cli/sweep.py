"""``fedmpi sweep``: the missing cases of a suite on this machine, side by side, resumable."""

from __future__ import annotations

import math
import shlex
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import gettempdir

from fedmpi.cli.ending import outlive
from fedmpi.cli.options import Budget, Deciding, Share, SuiteName, SweepOptions
from fedmpi.cli.plan import Planned, Selection, check_places, is_done, plan_suite, refuse_other_versions
from fedmpi.cli.progress import SweepProgress
from fedmpi.cli.terminal import counted, say
from fedmpi.cli.workers import CASES, Worker
from fedmpi.comm.launch import launcher, python
from fedmpi.config import locations
from fedmpi.config.documents import short
from fedmpi.config.suite import read
from fedmpi.errors import BadInput, Diverged, Interrupted, RunFailed
from fedmpi.jobs.status import last_error
from fedmpi.store.lock import state, temporary_folder

_MEANING = {0: "complete", 1: "failed", 2: "bad input", 3: "diverged", 75: "interrupted"}


_WHOLE = Share()
_AS_PLANNED = Deciding()


def sweep(
    suite: SuiteName,
    options: SweepOptions,
    share: Share = _WHOLE,
    budget: Budget = None,
    deciding: Deciding = _AS_PLANNED,
) -> int:
    """Run a suite's missing cases on this machine side by side, in priority order; resumable.

    Returns
    -------
    int
        0 all complete, 1 a case failed, 3 a case diverged, 75 cases are left (budget or signal).

    Examples
    --------
    fedmpi sweep gcfl/baselines --workers 2 --budget 30

    fedmpi sweep gcfl/table3 --until-decided --rows results/reference --dry-run
    """
    path = locations.find(suite)
    if deciding.until_decided:
        from fedmpi.cli.decide import until_decided

        return until_decided(path, options, share, budget, deciding)
    if deciding != _AS_PLANNED:
        raise BadInput(
            "--dry-run, --max-seeds, --spending and --rows: only with --until-decided "
            "(fedmpi run SUITE --list shows the cases)"
        )
    selection = Selection(cases=share.cases, share=share.share)
    found = read(path, options.overrides)
    plan = plan_suite(found, options.out, resume=True, selection=selection, ranks=options.ranks)
    code = run_missing(plan, path, options, share, budget)
    if share.share is None:
        _show_results(plan)
    return code


def _show_results(plan: Sequence[Planned]) -> None:
    """Print the table of the complete cases, and what to try next."""
    from fedmpi.cli.report import report

    folders = [item.folder for item in plan if is_done(item.checked, item.folder, True)]
    if folders:
        report(folders, None, False)
        say(f"Next: fedmpi report {shlex.quote(str(folders[0].parent))} --html page.html")


def run_missing(
    plan: Sequence[Planned],
    path: Path,
    options: SweepOptions,
    share: Share = _WHOLE,
    budget: float | None = None,
) -> int:
    """Run those cases of a suite's plan that are not done; return the exit code.

    Parameters
    ----------
    plan : sequence of Planned
    path : Path
        Of the suite.
    options : SweepOptions
    share : Share, optional
        How ranks are started; `plan` is the share already.
    budget : float, optional
        Minutes after which no case is started.
    """
    refuse_other_versions(plan)
    command = [*_starter(share.launch, options.ranks), "run", str(path), "--resume", *options.words]
    check_places(plan, options.source())
    outlive()
    deadline = math.inf if budget is None else time.monotonic() + 60 * budget
    return _Sweep(plan, command, options.workers, share.launch is not None, deadline).run()


def _starter(given: str | None, ranks: int) -> list[str]:
    """Return the command that starts the ranks of a worker, up to ``run``.

    Raises
    ------
    BadInput
        There is nothing that could start them.
    """
    if given is None:
        return [*(launcher(ranks) if ranks > 1 else []), *python()]
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise BadInput(f"--launch {short(given)}: {error}") from error
    if not words or shutil.which(words[0]) is None:
        raise BadInput(f"--launch {short(given)}: no such program")
    return words


class _Sweep:
    """The cases left, the workers, and how each case ended.

    Parameters
    ----------
    plan : sequence of Planned
    command : sequence of str
        What starts a worker, without the files of cases and answers.
    most : int
        Workers at a time.
    launched : bool
        Whether a launcher of the user's starts the ranks.
    deadline : float
        Time of the monotonic clock from which no case begins.
    """

    def __init__(
        self, plan: Sequence[Planned], command: Sequence[str], most: int, launched: bool, deadline: float
    ) -> None:
        self._command, self._most, self._launched, self._deadline = command, most, launched, deadline
        self._waiting = [item for item in plan if not item.done]
        self._total, self._done = len(plan), len(plan) - len(self._waiting)
        self._workers: list[Worker] = []
        self._codes: list[int] = []
        self._stopping = False
        self._again: set[int] = set()
        self._progress = SweepProgress(self._total, self._done)
        self._say = self._progress.console.print

    def run(self) -> int:
        """Keep all workers at work until no case is left or time is up."""
        self._say(f"{counted(self._total, 'case')}, {self._done} complete, {len(self._waiting)} to run")
        previous = {n: signal.signal(n, self._stop) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
        names = [item.checked.case.name for item in self._waiting]
        with self._folder() as folder, self._progress:
            (folder / CASES).write_text("".join(f"{name}\n" for name in names))
            try:
                while self._workers or (self._waiting and not self._stopping):
                    if time.monotonic() > self._deadline and not self._stopping:
                        self._say("the budget is used up: running cases finish their round")
                        self._stop()
                    self._hand_out(folder)
                    if self._stopping:
                        self._stop()  # one may have been starting when the signal came
                    self._collect()
                    time.sleep(0.02)
            finally:
                for worker in self._workers:
                    worker.kill()
                for number, handler in previous.items():
                    signal.signal(number, handler)
        return self._verdict()

    def _folder(self) -> AbstractContextManager[Path]:
        """Return a folder for what workers answer; with a launcher beside the cases, which all nodes see."""
        if not self._launched or not self._waiting:
            return temporary_folder(Path(gettempdir()), "fedmpi-sweep-")
        root = self._waiting[0].folder.parent
        root.mkdir(parents=True, exist_ok=True)
        return temporary_folder(root, ".sweep-")

    def _stop(self, *_: object) -> None:
        self._stopping = True
        for worker in self._workers:
            worker.ask_to_stop()

    def _hand_out(self, folder: Path) -> None:
        """Give each worker that has none a case, and start workers while there are too few."""
        idle = [worker for worker in self._workers if worker.item is None]
        free = self._most - len(self._workers)
        while (idle or free > 0) and not self._stopping and (item := self._next()):
            if not idle:
                free -= 1
                self._workers.append(Worker(self._command, folder))
                idle = self._workers[-1:]
            idle.pop(0).take(item)
        for worker in idle:
            worker.dismiss()

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
        self._say(f"{item.checked.case.name}: another process runs it, left alone")

    def _say_done(self, item: Planned, text: str) -> None:
        self._progress.ended(item, self._done)
        self._say(f"[{self._done}/{self._total}] {item.checked.case.name}: {text}")

    def _collect(self) -> None:
        for worker in list(self._workers):
            ended = worker.ended()
            if worker.item is not None and worker.rounds:
                self._progress.passed(worker.item, worker.rounds)
            if not worker.alive:
                self._workers.remove(worker)
            if ended is not None and not self._starts_again(worker, *ended[:2]):
                self._judge(*ended)

    def _starts_again(self, worker: Worker, item: Planned, code: int) -> bool:
        """Put a case back, once, whose launcher failed before an event was written (Slurm's PMI at times)."""
        failed = self._launched and not worker.alive and code not in (0, 2, 3, 75)
        if not failed or item.number in self._again or self._stopping or not worker.wrote_nothing(item):
            return False
        self._again.add(item.number)
        self._waiting.insert(0, item)
        why = f"code {code} before an event was written"
        if code in (signal.SIGALRM, -signal.SIGALRM, 128 + signal.SIGALRM):  # mpiexec, a process, srun
            why = "MPI had not started in time (FEDMPI_MPI_START_S)"
        self._say(f"{item.checked.case.name}: {why}; it is started once more")
        return True

    def _judge(self, item: Planned, code: int, seconds: float) -> None:
        """Note how a case ended, and say it."""
        if code == BadInput.exit_code and state(item.folder) == "live":
            self._leave_alone(item)  # two sweeps started it at once
            return
        meaning = _MEANING.get(code, f"ended with code {code}")
        if code == 0 and not is_done(item.checked, item.folder, True):
            code, meaning = RunFailed.exit_code, "failed, a rank left without a word,"
        self._codes.append(code)
        if code == Interrupted.exit_code and self._launched:
            self._stop()  # Slurm asks the ranks themselves when it ends a job
        self._done += code == 0
        place = f"; see {item.folder / 'log.txt'}" if code else ""
        if code == BadInput.exit_code and (said := last_error(item.folder / "log.txt")):
            place = f": {said}{place}"
        self._say_done(item, f"{meaning} after {seconds:.0f} s{place}")

    def _verdict(self) -> int:
        """Return the sweep's exit code and say what is left."""
        diverged = self._codes.count(Diverged.exit_code)
        left = self._total - self._done - diverged
        if diverged:
            self._say(f"{counted(diverged, 'case')} diverged")
        if left:
            verb, rest = ("is", "it") if left == 1 else ("are", "them")
            refused = " once what was refused is mended" if BadInput.exit_code in self._codes else ""
            self._say(f"{counted(left, 'case')} {verb} left; the same command continues {rest}{refused}")
        if any(code not in (0, 3, 75) for code in self._codes) and not self._stopping:
            return 1
        if left:
            return Interrupted.exit_code
        return Diverged.exit_code if diverged else 0
