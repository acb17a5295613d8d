"""Slurm's commands: what is asked of them, and what their answers mean.

Text formats are read, never JSON, whose layout differs from version to version.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedmpi.errors import BadInput

_TRANSIENT = (
    "Socket timed out",
    "Unable to contact slurm controller",
    "Zero Bytes were transmitted or received",
    "Slurm temporarily unable to accept job",
    "Resource temporarily unavailable",
    "Communication connection failure",
)
"""Errors that pass; anything else is refused for good."""

_WAITS_S = (2.0, 5.0, 10.0)
_ANSWER_S = 60.0

ACTIVE = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED", "RESIZING", "STOPPED",
          "REQUEUE_HOLD", "REQUEUE_FED", "SIGNALING", "STAGE_OUT", "SPECIAL_EXIT")  # fmt: skip
"""States of a task that still runs or may run again."""

REASONS = {
    "OUT_OF_MEMORY": "killed for memory: raise request.memory_per_rank",
    "NODE_FAIL": "its node failed",
    "TIMEOUT": "ran out of time before it could write a checkpoint: raise the limit",
    "CANCELLED": "cancelled",
    "BOOT_FAIL": "its node did not start",
    "DEADLINE": "missed its deadline",
    "PREEMPTED": "preempted and not queued again",
}
"""What ended a task, by Slurm's state."""


@dataclass(frozen=True)
class Task:
    """A task of an array, or a single job (`index` -1), as the queue has it.

    Attributes
    ----------
    job : str
        Number of the array or job.
    index : int
    state : str
        Slurm's word, such as RUNNING.
    reason : str
        Why it waits or how it ended.
    exit_code : str
        ``CODE:SIGNAL`` where it has ended, else empty.
    """

    job: str
    index: int
    state: str
    reason: str = ""
    exit_code: str = ""

    @property
    def active(self) -> bool:
        """Whether it runs or may run again."""
        return self.state in ACTIVE


def _run(
    arguments: Sequence[str], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one of Slurm's commands.

    Raises
    ------
    BadInput
        It is not installed, or takes longer than a minute.
    """
    if shutil.which(arguments[0]) is None:
        raise BadInput(
            f"no {arguments[0]} on the path: this is no Slurm cluster, or its module is not loaded; "
            "on one machine use fedmpi sweep"
        )
    try:
        return subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BadInput(f"{arguments[0]} does not answer within {_ANSWER_S:.0f} s; try again") from error


def _message(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a command says, in one line."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return "; ".join(lines) or f"exit code {done.returncode}"


def submit(script: Path, *, name: str, options: Sequence[str] = ()) -> str:
    """Submit a script and return the job's number.

    The user's ``SBATCH_*`` variables are not passed on: they would change what the script says.
    A named transient error is waited out; whether the job had gone in nevertheless is looked up by
    its `name`, which must be this submission's own.

    Raises
    ------
    BadInput
        sbatch refuses; its message is in the error.
    """
    for wait in (*_WAITS_S, None):
        done = _sbatch("--parsable", f"--job-name={name}", *options, str(script))
        if done.returncode == 0:
            return done.stdout.strip().splitlines()[-1].partition(";")[0]
        if wait is None or not any(text in _message(done) for text in _TRANSIENT):
            raise _refusal(script, _message(done))
        time.sleep(wait)
        if found := {task.job for task in queue(names=[name])}:
            return found.pop()
    raise AssertionError("unreachable")


def test(script: Path) -> None:
    """Ask whether sbatch would take a script.

    Raises
    ------
    BadInput
        It would not.
    """
    done = _sbatch("--test-only", str(script))
    if done.returncode != 0:
        raise _refusal(script, _message(done))


def _sbatch(*words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SBATCH_")}
    return _run(["sbatch", *words], kept)


def _refusal(script: Path, message: str) -> BadInput:
    advice = ""
    if "Requested node configuration is not available" in message:
        advice = "; compare cores, memory_per_rank and nodes of the system file with `sinfo -Nl`"
    return BadInput(f"sbatch refuses {script}: {message}{advice}")


def queue(*, jobs: Sequence[str] = (), names: Sequence[str] = ()) -> list[Task]:
    """Return the user's tasks that the queue still knows, ended ones included, of these jobs or names.

    Raises
    ------
    BadInput
        The queue does not answer.
    """
    chosen = [f"--name={','.join(names)}"] if names else []
    command = ["squeue", "-hra", "-t", "all", "-u", str(os.getuid()), *chosen, "-o", "%F|%K|%T|%r"]
    done = _run(command)
    if done.returncode != 0:
        raise BadInput(f"the queue does not answer: {_message(done)}")
    tasks = []
    for line in done.stdout.splitlines():
        job, index, state, reason = line.split("|", 3)
        if not jobs or job in jobs:
            tasks.append(Task(job, _number(index), state, reason))
    return tasks


def ended(job: str) -> list[Task]:
    """Return the tasks of a job with state and exit code, from the controller or from accounting.

    Empty where neither remembers the job.
    """
    done = _run(["scontrol", "-o", "show", "job", job])
    if done.returncode == 0:
        return [_shown(line) for line in done.stdout.splitlines() if "JobId=" in line]
    if shutil.which("sacct") is None:
        return []
    done = _run(["sacct", "-n", "-P", "-X", "-j", job, "-o", "JobID,State,ExitCode"])
    return [_accounted(line) for line in done.stdout.splitlines() if line.count("|") == 2]


def _shown(line: str) -> Task:
    facts = dict(word.split("=", 1) for word in line.split() if "=" in word)
    return Task(
        job=facts.get("ArrayJobId", facts["JobId"]),
        index=_number(facts.get("ArrayTaskId", "")),
        state=facts["JobState"],
        reason=facts.get("Reason", ""),
        exit_code=facts.get("ExitCode", ""),
    )


def _accounted(line: str) -> Task:
    number, state, code = line.split("|")
    job, _, index = number.partition("_")
    return Task(job, _number(index), state.split()[0], "", code)


def _number(index: str) -> int:
    """Return a task's number in its array; -1 for a job that is none."""
    return int(index) if index.isdigit() else -1


def cancel(targets: Sequence[str]) -> None:
    """Cancel jobs.

    Raises
    ------
    BadInput
        scancel refuses.
    """
    done = _run(["scancel", *targets])
    if done.returncode != 0:
        raise BadInput(f"scancel {' '.join(targets)}: {_message(done)}")
