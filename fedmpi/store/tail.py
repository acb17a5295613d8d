"""Follows an event log that another process, perhaps on another machine, is still writing."""

from __future__ import annotations

import json
import os
from pathlib import Path

from fedmpi.errors import BadInput
from fedmpi.store.events import Decoder, Event


class Tail:
    """Reads what has been added to an event log since the last look.

    The file is opened anew at each look, which is when a network file system asks its server for what others
    wrote. A log that became shorter, or another file of the same name, is read from its beginning.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin(-1)

    def _begin(self, identity: int) -> None:
        self._identity = identity
        self._read = 0
        self._decoder = Decoder()

    def poll(self) -> list[Event]:
        """Return the new events; none while there is no file, or none of a new line is whole.

        Raises
        ------
        BadInput
            A line is not an event of a fedmpi run, or of another schema.
        """
        try:
            with self.path.open("rb") as stream:
                state = os.fstat(stream.fileno())
                if state.st_ino != self._identity or state.st_size < self._read:
                    self._begin(state.st_ino)
                stream.seek(self._read)
                added = stream.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadInput(f"{self.path}: cannot read it ({error.strerror})") from error
        whole = added[: added.rfind(b"\n") + 1]
        self._read += len(whole)
        return [self._event(line) for line in whole.splitlines()]

    def _event(self, line: bytes) -> Event:
        try:
            return self._decoder.event(json.loads(line))
        except BadInput as error:
            raise BadInput(f"{self.path}: {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"{self.path}: not the event log of a fedmpi run ({error})") from error
