"""Wall-clock and CPU time, and time stamps."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_stamp() -> str:
    """Return the current UTC time as ISO 8601 with seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(stamp: str) -> float:
    """Return such a stamp as seconds since 1970."""
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


class Stopwatch:
    """Time since it was made or last restarted: `wall` and this process's `cpu`, in seconds."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start again from zero."""
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    @property
    def wall(self) -> float:
        """Wall-clock seconds."""
        return time.perf_counter() - self._wall

    @property
    def cpu(self) -> float:
        """User plus system CPU seconds of this process, all threads."""
        return time.process_time() - self._cpu
