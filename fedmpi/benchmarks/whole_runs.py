"""Whole runs as a user starts them: processes of their own, each into a folder."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fedmpi.comm.launch import launcher, python
from fedmpi.errors import RunFailed
from fedmpi.store.reader import AttemptRecord, load_run


def command_of(
    suite: str, changes: Sequence[str], *, mirror: Path | None, data: Path | None, offline: bool
) -> list[str]:
    """Return the words after ``fedmpi`` that run a suite, without ``--out``."""
    places = {"--mirror": mirror, "--data": data}
    words = ["run", suite, *(word for change in changes for word in ("--set", change))]
    words += [word for flag, place in places.items() if place is not None for word in (flag, str(place))]
    return [*words, *(["--offline"] if offline else [])]


def run(
    command: Sequence[str], out: Path, starter: Sequence[str] = (), what: str = "a run ended with"
) -> None:
    """Run a suite into a folder; its words after ``fedmpi`` are those of `command_of`.

    Raises
    ------
    RunFailed
        The run ended with an error: `what`, its exit code and the line that says why. All its lines are the
        error's notes.
    """
    whole = [*starter, *python(), *command, "--out", str(out)]
    done = subprocess.run(whole, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        lines = [line for text in (done.stdout, done.stderr) for line in text.strip().splitlines()]
        told = [line for line in lines if line.startswith("fedmpi:") or ": diverged:" in line]
        reason = (told or lines or ["without a word"])[-1]
        error = RunFailed(f"{what} code {done.returncode}: {reason}")
        error.add_note("\n".join(lines))
        raise error


def only_case(folder: Path) -> Path:
    """Return the folder of a suite's one case."""
    (case,) = (path for path in folder.iterdir() if path.is_dir())
    return case


def attempt_of(command: Sequence[str], ranks: int, name: str) -> AttemptRecord:
    """Run the one case of a suite on some ranks into a folder that is removed; return what it recorded.

    Raises
    ------
    BadInput
        There is no mpiexec, or the ranks are too many for this machine.
    RunFailed
        The run ended with an error; `name` is whose run it was.
    """
    starter = launcher(ranks, name)
    with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as folder:
        run(command, Path(folder), starter, f"{name}: on {ranks} ranks")
        return load_run(only_case(Path(folder))).attempts[-1]
