"""Messages that an algorithm declares, as bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.program import Message
from fedmpi.programs.hook_checks import Breach


@dataclass(frozen=True)
class MessageLayout:
    """Declared messages, one after another, as bytes.

    Attributes
    ----------
    messages : mapping of str to Message
    shared, clients, public : int
        Elements of a shared vector, number of clients, and of public graphs.
    """

    messages: Mapping[str, Message]
    shared: int = 0
    clients: int = 0
    public: int = 0

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a message."""
        return self.messages[name].sized(self.shared, self.clients, self.public)

    @property
    def nbytes(self) -> int:
        """Bytes of all together."""
        return sum(map(self._bytes_of, self.messages))

    def _bytes_of(self, name: str) -> int:
        return math.prod(self.shape(name)) * np.dtype(self.messages[name].dtype).itemsize

    def checked(self, name: str, array: Any) -> npt.NDArray[Any]:
        """Return an array that is as declared; raise Breach for another."""
        if name not in self.messages:
            raise Breach(f"sent {name}: declared are {', '.join(self.messages) or 'no messages'}")
        dtype, shape = np.dtype(self.messages[name].dtype), self.shape(name)
        found = np.asarray(array)
        if found.shape != shape or found.dtype != dtype:
            wanted = f"{dtype} {list(shape)}"
            raise Breach(f"sent {name} as {found.dtype} {list(found.shape)}: it is {wanted}")
        return found

    def pack(self, arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.uint8]:
        """Return arrays as bytes [nbytes]; raise Breach where one is missing."""
        if missing := self.messages.keys() - arrays.keys():
            raise Breach(f"sent no {sorted(missing)[0]}: call client.send for it")
        parts = [np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8) for name in self.messages]
        return np.concatenate([np.zeros(0, np.uint8), *parts])

    def read(self, rows: npt.NDArray[np.uint8]) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays [k, ...] of k rows of bytes [k, nbytes]."""
        found, begin = {}, 0
        for name, message in self.messages.items():
            size = self._bytes_of(name)
            part = np.ascontiguousarray(rows[:, begin : begin + size])
            found[name] = part.view(message.dtype).reshape(len(rows), *self.shape(name))
            begin += size
        return found
