"""What was submitted of a suite: ``ROOT/slurm/N/``, scripts, lists, logs and ``submission.json``."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from fedmpi.clock import utc_stamp
from fedmpi.config.documents import load_json
from fedmpi.errors import BadInput
from fedmpi.jobs import slurm
from fedmpi.jobs.plan import Batch, Wishes
from fedmpi.store import disk

FOLDER = "slurm"
_NAME = "submission.json"
_VERSION = 1


@dataclass(frozen=True)
class Job:
    """An array of tasks over `cases`, or with no cases the report's job."""

    number: str
    script: str
    tasks: Annotated[int, Field(ge=1)]
    cases: tuple[str, ...]

    def index(self, case: str) -> int:
        """Return the task that runs a case."""
        return self.cases.index(case) % self.tasks


@dataclass(frozen=True)
class Request:
    """What ``fedmpi jobs submit`` was asked, enough to ask it again."""

    suite: str
    overrides: tuple[str, ...]
    plugins: tuple[str, ...]
    data: str
    directory: str
    system: str
    wishes: Wishes


@dataclass(frozen=True)
class Submission:
    """One call of submit or resume and the jobs that came of it."""

    folder: Path
    request: Request
    time: str = field(default_factory=utc_stamp)
    jobs: tuple[Job, ...] = ()

    def save(self) -> None:
        """Write ``submission.json``, whole or not at all."""
        value = {"version": _VERSION, **_STORED.dump_python(self, exclude={"folder"})}
        disk.write_whole(self.folder / _NAME, json.dumps(value, indent=1))

    def is_saved(self) -> bool:
        """Return whether anything of it is on disk: a job was submitted."""
        return (self.folder / _NAME).exists()

    def add(self, job: Job) -> Submission:
        """Return it with one more job, and note that on disk."""
        more = replace(self, jobs=(*self.jobs, job))
        more.save()
        return more


_STORED = TypeAdapter(Submission)


def earlier(root: Path) -> list[Submission]:
    """Return the submissions of a suite's folder, oldest first.

    Raises
    ------
    BadInput
        A file is damaged or of a newer fedmpi.
    """
    paths = [path for path in (root / FOLDER).glob(f"*/{_NAME}") if path.parent.name.isdigit()]
    return [_load(path) for path in sorted(paths, key=lambda path: int(path.parent.name))]


def _load(path: Path) -> Submission:
    try:
        value = load_json(path, "submission")
        version = value.get("version")
        if not isinstance(version, int) or version <= _VERSION:
            return _STORED.validate_python({**value, "folder": path.parent})
        wrong = f"of version {version}, this fedmpi reads {_VERSION}; update fedmpi"
    except (BadInput, ValidationError) as error:
        place = error.errors()[0]["loc"] if isinstance(error, ValidationError) else ()
        reason = ".".join(map(str, place)) or str(error).removeprefix(f"{path}: ")
        wrong = f"damaged ({reason}); move the folder {path.parent} away"
    raise BadInput(f"{path}: {wrong}")


def new_folder(root: Path) -> Path:
    """Make and return the next folder ``ROOT/slurm/N``, this caller's alone.

    Raises
    ------
    BadInput
        It cannot be made.
    """
    for number in count(1):
        folder = root / FOLDER / str(number)
        try:
            with suppress(FileExistsError):
                folder.mkdir(parents=True)
                break
        except OSError as error:
            raise BadInput(f"cannot write in {root} ({error.strerror}); choose another --out") from error
    return folder


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write scripts and lists."""
    for name, text in texts.items():
        (folder / name).write_text(text)
        if name.endswith((".sbatch", ".sh")):
            (folder / name).chmod(0o755)


def submit(scripts: Mapping[str, Batch], submission: Submission, name: str) -> Submission:
    """Submit scripts that lie in the submission's folder, each with its batch, then the report.

    Every script is tried with ``--test-only`` before any is submitted. The report waits until all
    tasks have ended, well or not.

    Raises
    ------
    BadInput
        Slurm refuses one; the message says what is submitted already.
    """
    folder = submission.folder
    for script in (*scripts, "report.sbatch"):
        slurm.test(folder / script)
    token = f"{name}-{secrets.token_hex(3)}"
    for place, (script, batch) in enumerate(scripts.items()):
        with _naming(submission.jobs):
            number = slurm.submit(folder / script, name=f"{token}-{place}")
        cases = tuple(item.name for item in batch.items)
        submission = submission.add(Job(number, script, batch.tasks, cases))
    after = ":".join(job.number for job in submission.jobs)
    with _naming(submission.jobs):
        options = [f"--dependency=afterany:{after}"]
        number = slurm.submit(folder / "report.sbatch", name=f"{token}-report", options=options)
    return submission.add(Job(number, "report.sbatch", 1, ()))


@contextmanager
def _naming(jobs: Sequence[Job]) -> Iterator[None]:
    """Say in an error what has been submitted before it."""
    try:
        yield
    except BadInput as error:
        if not jobs:
            raise
        done = ", ".join(f"{job.number} ({job.script})" for job in jobs)
        raise BadInput(
            f"{error}; submitted before it: {done}; nothing else is. fedmpi jobs cancel takes them back, "
            "fedmpi jobs resume adds what is missing"
        ) from error
