"""Follows an event log that another process, perhaps on another machine, is still writing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fedmpi.errors import BadInput
from fedmpi.store import disk
from fedmpi.store.events import Event
from fedmpi.store.lines import Decoder, whole_lines


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
            with disk.open_plain(self.path) as stream:
                state = os.fstat(stream.fileno())
                if state.st_ino != self._identity or state.st_size < self._read:
                    self._begin(state.st_ino)
                stream.seek(self._read)
                return list(self._added(stream))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadInput(f"{self.path}: cannot read it ({error.strerror})") from error
        except BadInput as error:
            raise BadInput(f"{self.path}: {error}") from error

    def _added(self, stream: BinaryIO) -> Iterator[Event]:
        for line in whole_lines(stream, self._decoder):
            yield self._decoder.event(line)
            self._read += len(line) + 1
