"""The messages that an algorithm declares, one after another, as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.program import Message
from fedmpi.programs.hook_checks import Breach


@dataclass(frozen=True)
class MessageLayout:
    """Declared messages, one after another, as bytes."""

    messages: Mapping[str, Message]

    @property
    def nbytes(self) -> int:
        """Bytes of all together."""
        return sum(each.nbytes for each in self.messages.values())

    def checked(self, name: str, array: Any) -> npt.NDArray[Any]:
        """Return an array that is as declared; raise Breach for another."""
        if name not in self.messages:
            raise Breach(f"sent {name}: declared are {', '.join(self.messages) or 'no messages'}")
        message = self.messages[name]
        found = np.asarray(array)
        if found.shape != message.shape or found.dtype != np.dtype(message.dtype):
            wanted = f"{np.dtype(message.dtype)} {list(message.shape)}"
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
            part = np.ascontiguousarray(rows[:, begin : begin + message.nbytes])
            found[name] = part.view(message.dtype).reshape(-1, *message.shape)
            begin += message.nbytes
        return found
