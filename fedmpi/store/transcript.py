"""Transcript of the messages that reach rank 0, and of those that it sends: a file beside a run's record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedmpi.store import disk

NAME = "audit.jsonl"
BYTES_NAME = "audit.bin"


class Transcript:
    """Notes messages; writes them when asked to.

    Parameters
    ----------
    at_round : callable
        Returns the round of a message, from 0; -1 before the first.
    most : int
        Bytes of messages that an attempt keeps, beside their digests.
    """

    def __init__(self, at_round: Callable[[], int], most: int = 0) -> None:
        self._at_round, self._left = at_round, most
        self._lines: list[dict[str, Any]] = []
        self._kept: list[bytes] = []

    def begin(self, ranks: int, hosts: list[int]) -> None:
        """Note the start of an attempt: the number of ranks, and the rank of each client."""
        self._lines.insert(0, {"ranks": ranks, "rank_of_client": hosts})

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
        kept = 0 < len(data) <= self._left
        if kept:
            self._left -= len(data)
            self._kept.append(data)
        self._lines.append(
            {
                "round": self._at_round(),
                "kind": kind,
                "sender": sender,
                "receiver": receiver,
                "client": client,
                "bytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "kept": kept,
            }
        )

    def save(self, folder: Path) -> None:
        """Append what was noted since the last time to the files of a run folder.

        Raises
        ------
        RunFailed
            They could not be written (disk full).
        """
        lines, kept, self._lines, self._kept = self._lines, self._kept, [], []
        path = folder / BYTES_NAME
        try:
            if kept:
                with path.open("ab") as stream:
                    place = stream.tell()
                    stream.write(b"".join(kept))
                for line in lines:
                    if line.get("kept"):
                        line["offset"] = place
                        place += line["bytes"]
            path = folder / NAME
            with path.open("a", encoding="utf-8") as text:
                text.writelines(json.dumps(line) + "\n" for line in lines)
        except OSError as error:
            raise disk.failure(path, error) from error
