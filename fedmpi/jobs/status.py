"""The state of each case: what its record says joined with what the queue says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedmpi.errors import BadInput
from fedmpi.jobs import slurm
from fedmpi.jobs.cases import OTHER_VERSION, Item
from fedmpi.jobs.slurm import Task
from fedmpi.jobs.submission import Job, Submission

_TAIL_BYTES = 20_000
_KILLED_FOR_MEMORY = re.compile(
    r"\boom[-_ ]?kill|\bout[- ]of[- ]memory (handler|condition)|\btasks? [^:]*: out of memory", re.IGNORECASE
)
"""What Slurm's step daemon and srun say; a GPU without memory is not meant."""

Tasks = Mapping[tuple[str, int], Task]


@dataclass(frozen=True)
class State:
    """A case with its state in one word, the rest in a few, and the task that has it."""

    item: Item
    word: str
    detail: str
    job: str
    active: bool

    @property
    def left(self) -> bool:
        """Whether it is neither done nor on its way."""
        return not self.item.done and not self.active and not self.held

    @property
    def held(self) -> bool:
        """Whether a live lock says that it runs, though the queue has no task for it.

        A sweep outside of the queue, or a run on another node that was killed less than two minutes ago.
        """
        return self.word == "running" and not self.active


@dataclass(frozen=True)
class Queue:
    """What Slurm says of some jobs; `trouble` where it does not answer."""

    tasks: Tasks
    trouble: str = ""

    def active_jobs(self) -> list[str]:
        """Return the numbers of the jobs that have a task in the queue."""
        return sorted({task.job for task in self.tasks.values() if task.active}, key=int)


def ask(submissions: Sequence[Submission]) -> Queue:
    """Ask Slurm about the jobs of submissions."""
    numbers = [job.number for submission in submissions for job in submission.jobs]
    if not numbers:
        return Queue({})
    try:
        found = {(task.job, task.index): task for task in slurm.queue(jobs=numbers)}
        for number in numbers:
            mine = [task for (job, _), task in found.items() if job == number]
            if not any(task.active for task in mine):
                found.update({(task.job, task.index): task for task in slurm.ended(number)})
    except BadInput as error:
        return Queue({}, str(error))
    return Queue(found)


def ask_or_refuse(submissions: Sequence[Submission]) -> Queue:
    """Ask Slurm about the jobs of submissions, before something is done about them.

    Raises
    ------
    BadInput
        The queue does not answer, so a case might be started twice.
    """
    queue = ask(submissions)
    if queue.trouble:
        raise BadInput(f"{queue.trouble}; nothing was done")
    return queue


def states(items: Iterable[Item], submissions: Sequence[Submission], queue: Queue) -> list[State]:
    """Return the state of every case."""
    latest: dict[str, Job] = {}
    for submission in submissions:
        for job in submission.jobs:
            latest.update(dict.fromkeys(job.cases, job))
    return [_state(item, latest.get(item.name), queue) for item in items]


def _state(item: Item, job: Job | None, queue: Queue) -> State:
    task, label = None, ""
    if job is not None:
        index = job.index(item.name)
        label = f"{job.number}_{index}"
        task = queue.tasks.get((job.number, index))
    word, detail = _words(item, task, submitted=job is not None, answered=not queue.trouble)
    return State(item, word, detail, label, task is not None and task.active)


def _words(item: Item, task: Task | None, *, submitted: bool, answered: bool) -> tuple[str, str]:
    at = f"round {item.rounds} of {item.case.rounds}"
    if item.done:
        return "done", f"{item.case.rounds} rounds"
    if item.status == OTHER_VERSION:
        return item.status, item.reason
    if item.status == "running":
        return "running", at
    if task is not None and task.active:
        return _active(item, task, at)
    if item.status == "interrupted":
        return "interrupted", at
    if item.status in ("failed", "diverged"):
        return item.status, item.reason
    if task is not None or item.status in ("stale", "damaged"):
        begun = f"after {at}: " if item.rounds else ""
        return "failed", begun + _why(item, task)
    if submitted and answered:
        return "failed", _why(item, None)
    return ("unknown", "the queue does not answer") if submitted else ("not submitted", "")


def _active(item: Item, task: Task, at: str) -> tuple[str, str]:
    begun = f", {at}" if item.rounds else ""
    if task.state == "RUNNING":
        return "waiting", f"for its turn in a running task{begun}"
    return "waiting", f"{task.state.lower()}: {task.reason}{begun}"


def _why(item: Item, task: Task | None) -> str:
    """Return why a case ended that is not complete: the log's word, else Slurm's."""
    said = last_error(item.folder / "log.txt")
    if _KILLED_FOR_MEMORY.search(said):
        return slurm.REASONS["OUT_OF_MEMORY"]
    if task is not None and task.state in slurm.REASONS:
        return slurm.REASONS[task.state]
    if said:
        return said
    if task is not None and task.state != "COMPLETED":
        return f"{task.state.lower()}, exit code {task.exit_code or 'unknown'}"
    return "killed, or never begun; nothing in its log.txt"


def last_error(log: Path) -> str:
    """Return the last line of a case's log in which fedmpi or Slurm names an error; empty without one."""
    if not log.is_file():  # a pipe would be waited for
        return ""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").replace("\0", "").splitlines()
    except OSError:
        return ""
    found = ""
    for line in lines:
        if line.startswith("--- "):  # what an earlier attempt said is over
            found = ""
        elif line.startswith("fedmpi: "):
            found = line.removeprefix("fedmpi: ")
        elif _KILLED_FOR_MEMORY.search(line) or ("error:" in line and "srun" in line and not found):
            found = line.strip()
    return found
