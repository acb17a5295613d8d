"""Position of a rank in its run, set by single assignments: a watchdog reads it from another thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WAITING = frozenset({"", "wait", "communicate"})
"""Phases in which a rank stands still because of others, and what is in no phase."""


@dataclass
class Position:
    """Hook, phase, round and client of a rank.

    Attributes
    ----------
    hook : tuple of str or None
        Name of the hook that runs, a new tuple for each call; None between hooks.
    phase : str
        Of `fedmpi.store.schema.PHASES`; empty between phases.
    round : int
        From 0; -1 before the first.
    client : int
        That trains, or trained last, the first of its group; -1 before.
    names : sequence of str
        Of all clients.
    writing : bool
        Whether the run folder is being written: an exception from outside would leave half a line there.
    """

    hook: tuple[str] | None = None
    phase: str = ""
    round: int = -1
    client: int = -1
    names: Sequence[str] = ()
    writing: bool = False

    def describe(self, seconds: float) -> str:
        """Return place and time, such as ``fedfoo.penalty for 600 s (round 3, client MUTAG)``."""
        phase = f"phase {self.phase}" if self.phase else "start-up"
        hook, parts = self.hook, []
        if self.round >= 0:
            parts.append(f"round {self.round + 1}")
        if self.client >= 0 and self.phase == "train":
            parts.append(f"client {self.names[self.client]}")
        inside = f" ({', '.join(parts)})" if parts else ""
        return f"{phase if hook is None else hook[0]} for {seconds:.0f} s{inside}"
