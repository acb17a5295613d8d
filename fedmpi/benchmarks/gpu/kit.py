"""The parts of the GPU kit: each is run, and ended where it takes too long; what it finds is kept (no torch).

A part is a process of its own because a GPU that has failed once takes no more work from the process that it
failed in.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fedmpi.benchmarks.samples import Turns
from fedmpi.clock import Stopwatch
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput, FedmpiError
from fedmpi.store import disk

PARTS = {
    "device": (15.0, "rounds:describe_device"),
    "agreement": (60.0, "agreement:findings"),
    "rounds": (45.0, "rounds:timed"),
    "models": (30.0, "rounds:by_model"),
    "profile": (32.0, "rounds:profiled"),
    "resume": (46.0, "launched:resume"),
    "ranks": (40.0, "launched:ranks"),
    "sharing": (40.0, "launched:sharing"),
    "transport": (30.0, "launched:transport"),
}
"""In the order in which they run: seconds after which a part is ended, and what does it."""

_OF_GRAPHS = ("proteins", "nci1", "molecules", "sider")
SETTINGS = (*_OF_GRAPHS, "cora")
PEER_PROFILED = ("synthetic", "proteins", "sider")
"""Settings whose peer is profiled: in the others the profiler takes minutes for its operators."""
GROUPS_OF = {"synthetic": 1, "nci1": 8}
"""Settings of runs on several ranks, with the size of a group: four groups and no fewer."""

MODELS_OF = {"synthetic": ("dataset.synthetic.domains=1", "partition=chunks"), "sider": (), "cora": ()}
"""Settings on which other models than the suite's are timed, with changes: clients of one shape."""

_EVERY = ("synthetic", *_OF_GRAPHS)
PER_SETTING: dict[str, Collection[str]] = {
    "rounds": _EVERY,
    "models": MODELS_OF,
    "profile": _EVERY,
    "sharing": GROUPS_OF,
    "transport": GROUPS_OF,
}
"""Parts that run once for each setting, with those that they take."""

CHECKS, ROUNDS, RESUME = "gpu/checks", "gpu/rounds", "gpu/resume"
"""Suites: what is held against the CPU, the settings that are timed, and what is killed and resumed."""

Told = Callable[[str], None]
_KEPT_LINES = 40
"""Last lines of a part's standard error that are kept: the machine may be out of reach afterwards."""


class Skipped(Exception):
    """A part has nothing to work on here, for the reason that it names."""


@dataclass(frozen=True)
class Request:
    """What a part is asked for.

    Attributes
    ----------
    part : str
        One of `PARTS`.
    setting : str
        Of the suite `ROUNDS`, for parts that run once for each; else empty.
    device : str
        ``cuda`` or ``cpu``.
    source : DataSource
    turns : Turns
        Pairs of rounds that are timed.
    """

    part: str
    setting: str
    device: str
    source: DataSource
    turns: Turns

    @property
    def limit_s(self) -> float:
        """Seconds after which the part is ended."""
        return PARTS[self.part][0]

    @property
    def title(self) -> str:
        """The part and its setting, for the user."""
        return f"{self.part} {self.setting}".strip()


def requests(
    parts: Sequence[str], settings: Sequence[str], device: str, source: DataSource, turns: Turns
) -> list[Request]:
    """Return what the parts are asked for, one after another."""
    return [
        Request(part, setting, device, source, turns)
        for part in PARTS
        if part in parts
        for setting in (settings if part in PER_SETTING else ("",))
        if not setting or setting in PER_SETTING[part]
    ]


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
    limit, watch, context = outcome.request.limit_s, Stopwatch(), get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.NamedTemporaryFile("r", errors="replace") as errors:
        process = context.Process(target=_work, args=(outcome.request, sender, errors.name))
        process.start()
        sender.close()
        try:
            with suppress(EOFError):  # it has ended
                while receiver.poll(max(0.0, limit - watch.wall)):
                    _take(outcome, receiver.recv(), watch.wall)
                    kept()
            process.join(max(0.0, limit - watch.wall))
            late = process.exitcode is None
        finally:
            with suppress(ProcessLookupError):  # of its session none is left
                os.killpg(process.ident or 0, signal.SIGKILL)
            process.kill()
            process.join()
        outcome.errors = [line.rstrip() for line in errors if line.strip()][-_KEPT_LINES:]
    outcome.seconds = watch.wall
    _conclude(outcome, process.exitcode or 0, late)
    kept()


def _work(request: Request, sender: Connection, errors: str) -> None:
    """Do a part in a session of its own; send each finding, or why there is nothing to do."""
    os.setsid()
    for number, path in ((1, os.devnull), (2, errors)):
        with open(path, "w") as file:
            os.dup2(file.fileno(), number)
    module, name = PARTS[request.part][1].split(":")
    try:
        for finding in getattr(import_module(f"fedmpi.benchmarks.gpu.{module}"), name)(request):
            sender.send({"finding": finding})
    except Skipped as skipped:
        sender.send({"skipped": str(skipped)})
    except FedmpiError as error:
        sys.stderr.write("\n".join([*getattr(error, "__notes__", ()), f"{error}\n"]))
        sys.exit(error.exit_code)


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
