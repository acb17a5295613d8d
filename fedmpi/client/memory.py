"""What an algorithm has its clients keep: vectors by name, and further moments of the optimizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fedmpi.algorithms.program import Memory, Size, Tensors
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
