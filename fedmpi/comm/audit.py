"""Who listens to the messages of rank 0: the audit of a run."""

from __future__ import annotations

from typing import Protocol


class Listener(Protocol):
    """Is told of each message that reaches rank 0, and of each that it sends."""

    def message(
        self, kind: str, sender: int, data: bytes, *, receiver: int | None = 0, client: int | None = None
    ) -> None:
        """Note a message.

        Parameters
        ----------
        kind : str
            What it is for.
        sender : int
            Rank.
        data : bytes
        receiver : int or None
            Rank; None: all.
        client : int, optional
            Whose message it is, where it is one client's alone.
        """
