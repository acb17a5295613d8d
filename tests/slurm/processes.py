"""Processes by id and start time, so that none is ended that only has the id of one that was."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path


def start_time(pid: int) -> str | None:
    """Return the start time of a live process; None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def end(pid: int, started: str | None, patience_s: float = 5.0) -> None:
    """End one process if it is still the one that was started then: TERM, and KILL when that is not heard."""
    for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 2.0)):
        if started is None or start_time(pid) != started:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        until = time.monotonic() + wait_s
        while start_time(pid) == started and time.monotonic() < until:
            time.sleep(0.05)


def children(pid: int) -> list[int]:
    """Return the descendants of a process, the youngest generation first."""
    try:
        direct = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [one for child in direct for one in (*children(child), child)]
