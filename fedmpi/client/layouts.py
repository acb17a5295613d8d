"""What an algorithm has its clients keep, vectors by name and further moments, and send, as bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.algorithms.program import Memory, Message, Size, Tensors
from fedmpi.models.flat import FlatModel, SharedPart
from fedmpi.programs.hook_checks import Breach
from fedmpi.programs.hooks import Hooks


@dataclass(frozen=True)
class MemoryLayout:
    """What clients of one model shape keep.

    Attributes
    ----------
    vectors : dict of str to Memory
    sizes, moments : dict of str to int
        Elements of each vector, and of each of the further moments.
    parts : dict of str to SharedPart
        The tensors of those whose size is names.
    """

    vectors: Mapping[str, Memory]
    sizes: Mapping[str, int]
    moments: Mapping[str, int]
    parts: Mapping[str, SharedPart]

    @classmethod
    def of(cls, algorithm: Hooks, model: FlatModel, shared: SharedPart, share: str) -> MemoryLayout:
        """Return the layout of a model's clients; `share` is the case's option."""
        names = tuple(slot.name for slot in model.slots)
        tensors = Tensors(names, tuple(name for name in names if algorithm.shares(name, share)))
        vectors, moments = algorithm.memory(tensors), algorithm.moments(tensors)
        parts = {
            name: model.shared(frozenset(each.size).__contains__)
            for name, each in vectors.items()
            if isinstance(each.size, tuple)
        }

        def elements(size: Size, of_model: int) -> int:
            if isinstance(size, tuple):
                return model.shared(frozenset(size).__contains__).size
            return {"model": of_model, "shared": shared.trained}[size] if isinstance(size, str) else size

        sizes = {name: elements(each.size, model.length) for name, each in vectors.items()}
        of_moments = {name: elements(each, model.trained) for name, each in moments.items()}
        return cls(vectors, sizes, of_moments, parts)

    def at_start(self, device: torch.device | str) -> Memories:
        """Return a client's vectors before its first round; those that start as its model are zero."""
        found = {}
        for name, each in self.vectors.items():
            start = torch.nan if each.start is None else 0.0 if each.start == "model" else each.start
            found[name] = torch.full((self.sizes[name],), start, device=device)
        return Memories(self, found)


class Memories(MutableMapping[str, Any]):
    """A client's vectors as programs see them: an assignment copies, what is not there yet reads as None.

    Attributes
    ----------
    held : dict of str to float32 [*]
    """

    def __init__(self, layout: MemoryLayout, held: dict[str, Tensor]) -> None:
        self.layout, self.held = layout, held

    def __getitem__(self, name: str) -> Tensor | None:
        vector = self._of(name)
        absent = self.layout.vectors[name].start is None and bool(torch.isnan(vector[0]))
        return None if absent else vector

    def __setitem__(self, name: str, value: Any) -> None:
        vector = self._of(name)
        if not isinstance(value, Tensor) or value.shape != vector.shape or value.dtype != vector.dtype:
            kind = f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise Breach(f"set memory {name} to {kind}: it is a tensor float32 [{len(vector)}]")
        if value is not vector:
            vector.copy_(value)

    def __delitem__(self, name: str) -> None:
        raise Breach(f"deleted memory {name}: what is declared stays")

    def __iter__(self) -> Iterator[str]:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)

    def _of(self, name: str) -> Tensor:
        if name not in self.held:
            known = ", ".join(self.held) or "nothing"
            raise Breach(f"used memory {name}: memory() declares {known}")
        return self.held[name]

    def start(self, model: Tensor) -> None:
        """Set the vectors that start as the client's model."""
        for name, each in self.layout.vectors.items():
            if each.start == "model":
                self.held[name].copy_(model)

    @property
    def judged(self) -> list[Tensor]:
        """Vectors that the evaluated model depends on."""
        return [self.held[name] for name, each in self.layout.vectors.items() if each.judged]


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
        """Return an array that is as declared, a personal one of all clients; raise Breach for another."""
        if name not in self.messages:
            raise Breach(f"sent {name}: declared are {', '.join(self.messages) or 'no messages'}")
        dtype, shape = np.dtype(self.messages[name].dtype), self.shape(name)
        if self.messages[name].personal:
            shape = (self.clients, *shape)
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
