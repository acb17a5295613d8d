"""State dicts by somebody who knows the formats: other names, shapes, types and values, and code."""

from __future__ import annotations

import io
import json
import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from safetensors.torch import save
from torch import Tensor

from tests.fuzz import damage, nasty

EXECUTED = "executed"
"""File that is there where somebody's code ran."""

State = dict[str, Any]


class Code:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path(EXECUTED).write_text, ("x",)


def _nested(each: Tensor, value: Any) -> Any:
    return {"weight": each, "more": [value]}


_VALUES: dict[str, Callable[[Tensor, Any], Any]] = {
    "flat": lambda each, value: each.reshape(-1),
    "shorter": lambda each, value: each[:-1],
    "empty": lambda each, value: each[:0],
    "number": lambda each, value: torch.tensor(1.5),
    "huge": lambda each, value: torch.zeros(1, dtype=torch.float16).expand(10**6, 10**7),
    "half": lambda each, value: each.half(),
    "whole": lambda each, value: each.long(),
    "complex": lambda each, value: each.to(torch.complex64),
    "infinite": lambda each, value: each * float("inf"),
    "large": lambda each, value: each * 1e30,
    "not a number": lambda each, value: torch.full_like(each, torch.nan),
    "transposed": lambda each, value: each.T,
    "sparse": lambda each, value: each.to_sparse(),
    "nowhere": lambda each, value: each.to("meta"),
    "parameter": lambda each, value: torch.nn.Parameter(each),
    "nested": _nested,
    "other": lambda each, value: value,
    "code": lambda each, value: Code(),
}


@dataclass(frozen=True)
class OtherState:
    """What is done to a state dict: a tensor, a name, or the whole."""

    kind: str
    which: int
    value: Any
    protocol: int

    def apply(self, state: State) -> Any:
        """Return what is saved in place of the state."""
        name = list(state)[self.which % len(state)]
        if self.kind in _VALUES:
            return {**state, name: _VALUES[self.kind](state[name], self.value)}
        left = {key: each for key, each in state.items() if key != name}
        match self.kind:
            case "missing":
                return left
            case "renamed":
                return {**left, str(self.value)[:50]: state[name]}
            case "added":
                return {**state, str(self.value)[:50]: state[name].clone()}
            case "numbered":
                return {**left, 7: state[name]}
            case "listed":
                return list(state.values())
        return self.value

    def content(self, state: State, suffix: str) -> bytes:
        """Return a file of the changed state; of what safetensors cannot hold, some bytes."""
        changed = self.apply(state)
        if suffix == ".safetensors":
            try:
                return save(changed)
            except Exception:
                return repr(changed)[:200].encode(errors="replace")
        if self.protocol % 3 == 0:
            return pickle.dumps(changed, protocol=self.protocol % 6)
        content = io.BytesIO()
        torch.save(changed, content, pickle_protocol=2 + self.protocol % 4,
                   _use_new_zipfile_serialization=self.protocol % 2 == 0)  # fmt: skip
        return content.getvalue()


_WHOLE = ("missing", "renamed", "added", "numbered", "listed", "everything")

of_states = st.builds(
    OtherState,
    st.sampled_from((*_VALUES, *_WHOLE)),
    st.integers(0, 100),
    nasty.plain | nasty.numbers,
    st.integers(0, 11),
)


def with_header(content: bytes, harm: damage.OtherValue) -> bytes:
    """Return a safetensors file whose header is changed, and has the right length."""
    (length,) = struct.unpack("<Q", content[:8])
    header = harm.apply(content[8 : 8 + length]).rstrip()
    json.loads(header)
    return struct.pack("<Q", len(header)) + header + content[8 + length :]
