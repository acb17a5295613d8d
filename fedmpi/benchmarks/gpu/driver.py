"""Starts the parts of the GPU kit one by one, ends those that take too long, and keeps what they find."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from fedmpi.benchmarks.gpu.part import MARK, REQUEST
from fedmpi.benchmarks.gpu.plan import Request
from fedmpi.clock import Stopwatch
from fedmpi.comm.launch import python
from fedmpi.errors import BadInput
from fedmpi.store import disk

Told = Callable[[str], None]
_KEPT_LINES = 40
"""Last lines of a part's standard error that are kept: the machine may be out of reach afterwards."""


@dataclass
class Outcome:
    """How a part ended, and what it had found until then.

    `status` is ``complete``, ``differs`` (a device disagrees with the CPU, or two runs with each other),
    ``skipped``, ``timed out`` or ``failed``; `reason` is empty where it is ``complete``. `errors` are the
    last lines of its standard error, kept where it is not good; they may name folders of the machine.
    """

    request: Request
    status: str = "running"
    reason: str = ""
    seconds: float = 0.0
    findings: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether nothing is wrong: it is complete, or has nothing to work on here."""
        return self.status in ("complete", "skipped")

    def record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "part": self.request.part,
            "setting": self.request.setting,
            "status": self.status,
            "reason": self.reason,
            "seconds": round(self.seconds, 1),
            "limit_seconds": self.request.limit_s,
            "findings": self.findings,
            **({} if self.good else {"errors": self.errors}),
        }


def run(
    requests: Sequence[Request],
    settings: Mapping[str, Any],
    provenance: Mapping[str, Any],
    out: Path,
    told: Told,
) -> dict[str, Any]:
    """Run all parts and return what they found; the file has it after every finding.

    Parameters
    ----------
    requests : sequence of Request
    settings, provenance : mapping
        JSON values: what was asked for, and where it ran.
    out : Path
        JSON file.
    told : callable
        Given a line for the user as each part begins and ends.

    Raises
    ------
    BadInput
        There is no such device, or the file cannot be written.
    """
    outcomes: list[Outcome] = []

    def kept() -> dict[str, Any]:
        parts = [each.record() for each in outcomes]
        report = {"benchmark": "gpu", "settings": settings, "provenance": provenance, "parts": parts}
        try:
            disk.write_whole(out, json.dumps(report, indent=1) + "\n")
        except OSError as error:
            raise BadInput(f"--out {out}: {error.strerror}") from error
        return report

    for request in requests:
        told(f"{request.title}: {request.limit_s:.0f} s at most")
        outcomes.append(outcome := Outcome(request))
        _run(outcome, kept)
        if request.part == "device" and not outcome.good:
            raise BadInput(outcome.reason)
        reason = outcome.reason and f": {outcome.reason}"
        told(f"{request.title}: {outcome.status} in {outcome.seconds:.0f} s{reason}")
    return kept()


def _run(outcome: Outcome, kept: Callable[[], object]) -> None:
    """Run one part as a process of its own, and leave nothing behind that it started."""
    request, watch = outcome.request, Stopwatch()
    command = [*python("fedmpi.benchmarks.gpu.part"), REQUEST.dump_json(request).decode()]
    with tempfile.TemporaryFile("w+") as errors, _started(command, errors) as process:
        timer = threading.Timer(request.limit_s, _kill, [process])
        timer.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(MARK):
                    _take(outcome, json.loads(line.removeprefix(MARK)), watch.wall)
                    kept()
            code = process.wait()
        finally:
            timer.cancel()
            _kill(process)
        errors.seek(0)
        outcome.errors = [line.rstrip() for line in errors.read().splitlines() if line.strip()][-_KEPT_LINES:]
    outcome.seconds = watch.wall
    _conclude(outcome, code, late=code == -signal.SIGKILL and outcome.seconds >= request.limit_s)
    kept()


def _take(outcome: Outcome, message: Mapping[str, Any], seconds: float) -> None:
    """Keep what a part says: a finding, or why it has nothing to work on."""
    if "skipped" in message:
        outcome.status, outcome.reason = "skipped", message["skipped"]
    else:
        outcome.findings.append(message["finding"])
        outcome.seconds = seconds


def _conclude(outcome: Outcome, code: int, late: bool) -> None:
    """Set how a part ended, by its exit code and whether it was ended."""
    wrong = [each for each in outcome.findings if each.get("agrees") is False]
    if late:
        outcome.status, outcome.reason = "timed out", f"ended after {outcome.request.limit_s:.0f} s"
    elif code:
        outcome.status, outcome.reason = "failed", (outcome.errors or [f"code {code}"])[-1].strip()
    elif wrong:
        names = ", ".join(str(each.get("case", each.get("what"))) for each in wrong)
        outcome.status, outcome.reason = "differs", names
    elif outcome.status == "running":
        outcome.status = "complete"


def _started(command: Sequence[str], errors: IO[str]) -> subprocess.Popen[str]:
    """Start a process in a session of its own."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=True,
    )


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process and all others of its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
