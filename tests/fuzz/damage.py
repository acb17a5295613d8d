"""Damage to files, from a flipped bit to a value of another type."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from hypothesis import strategies as st

from tests.fuzz import nasty

_CHANGES: dict[str, Callable[[bytes, int], bytes]] = {
    "flip": lambda after, amount: bytes(byte ^ (1 << amount % 8) for byte in after[:1]) + after[1:],
    "set": lambda after, amount: bytes([amount % 256]) + after[1:],
    "cut": lambda after, amount: b"",
    "insert": lambda after, amount: bytes(amount * step % 256 for step in range(1, 1 + amount % 40)) + after,
    "remove": lambda after, amount: after[amount:],
    "repeat": lambda after, amount: after[:amount] + after,
    "zero": lambda after, amount: bytes(len(after[:amount])) + after[amount:],
}
"""What becomes of the bytes behind a place; the amount says how many, or which."""

LINES = ("double line", "remove line", "swap lines", "text")
_SCALE = 1 << 20


@dataclass(frozen=True)
class Damage:
    """What is done to a file: `where` in it is a share of its length, so that it fits any file."""

    kind: str
    where: int
    amount: int
    text: str = ""

    def apply(self, content: bytes) -> bytes:
        """Return the damaged content."""
        at = self.where * len(content) // _SCALE
        if self.kind in LINES and self.kind != "text":
            return self._lines(content)
        if self.kind == "text":
            return content[:at] + self.text.encode(errors="replace") + content[at:]
        return content[:at] + _CHANGES[self.kind](content[at:], self.amount)

    def _lines(self, content: bytes) -> bytes:
        lines = content.splitlines(keepends=True)
        if not lines:
            return content
        at = self.where * len(lines) // _SCALE
        other = self.amount % len(lines)
        match self.kind:
            case "double line":
                lines.insert(at, lines[at])
            case "remove line":
                del lines[at]
            case _:
                lines[at], lines[other] = lines[other], lines[at]
        return b"".join(lines)


places = st.integers(0, 2**32 - 1).map(lambda drawn: drawn * 0x9E3779B1 % 2**32 * _SCALE >> 32)
"""Shares of a file; the multiplication spreads out the small numbers that hypothesis likes to draw."""


def _damages(kinds: tuple[str, ...]) -> st.SearchStrategy[Damage]:
    return st.builds(Damage, st.sampled_from(kinds), places, st.integers(1, 600), nasty.texts)


of_bytes = _damages((*_CHANGES, *["flip"] * 10))
"""Of files that are no text; single bits most of all."""

of_text = _damages((*_CHANGES, *LINES))


@dataclass(frozen=True)
class OtherValue:
    """A value of JSON text replaced by another, or its key left out, added, or renamed; at any depth."""

    line: int
    path: tuple[int, ...]
    kind: str
    value: Any

    def apply(self, content: bytes) -> bytes:
        """Return the changed content; of lines of JSON, one of them changed."""
        lines = content.decode().splitlines() if content.count(b'"event"') > 1 else [content.decode()]
        at = self.line * len(lines) // _SCALE
        with suppress(RecursionError, ValueError):
            lines[at] = self._line(lines[at])
        return ("\n".join(lines) + "\n").encode(errors="replace")

    def _line(self, text: str) -> str:
        whole = holder = json.loads(text)
        for step in self.path:
            inner = _inside(holder)
            if not inner:
                break
            key = list(inner)[step % len(inner)]
            if not isinstance(inner[key], dict | list) or not inner[key]:
                break
            holder = inner[key]
        inner = _inside(holder)
        if not inner:
            return json.dumps(self.value)
        key = list(inner)[self.path[-1] % len(inner)]
        if self.kind == "remove":
            del holder[key]
        elif self.kind == "add" and isinstance(holder, dict):
            holder[str(self.value)[:50]] = self.value
        else:
            holder[key] = self.value
        return json.dumps(whole)


def _inside(holder: Any) -> dict[Any, Any]:
    if isinstance(holder, dict):
        return holder
    return dict(enumerate(holder)) if isinstance(holder, list) else {}


of_json = st.builds(
    OtherValue,
    places,
    st.lists(st.integers(0, 50), min_size=1, max_size=5).map(tuple),
    st.sampled_from(("replace", "replace", "remove", "add")),
    nasty.json_values | st.just(int("9" * 4000)),
)


@dataclass(frozen=True)
class Tampering:
    """A change of an HDF5 file by somebody who knows the format."""

    kind: str
    which: int
    value: Any

    def apply(self, path: Path) -> None:
        """Change the file in place; what h5py does not let one write stays as it is."""
        with h5py.File(path, "r+") as file:
            items: list[Any] = [file]
            file.visititems(lambda _, item: items.append(item))
            if self.kind in _OF_DATASETS:
                items = [item for item in items if isinstance(item, h5py.Dataset)]
            items.sort(key=lambda item: item.name)
            with suppress(TypeError, ValueError, OSError, KeyError, RuntimeError, IndexError):
                _TAMPERINGS[self.kind](file, items[self.which % len(items)], self)

    @property
    def array(self) -> Any:
        """The value as something that HDF5 takes."""
        if isinstance(self.value, str):
            return self.value.replace("\0", "")
        return np.array(str(self.value) if self.value is None else self.value)


def _attribute(item: Any, by: Tampering) -> None:
    names = list(item.attrs)
    item.attrs[names[by.which % len(names)] if names else "kind"] = by.array


def _no_attribute(item: Any, by: Tampering) -> None:
    if names := list(item.attrs):
        del item.attrs[names[by.which // 7 % len(names)]]


def _element(item: Any, by: Tampering) -> None:
    content = item[()]
    flat = content.reshape(-1)
    if len(flat):
        flat[by.which // 5 % len(flat)] += 1
        item[...] = content


def _in_place(file: h5py.File, item: Any, value: Any = None, **made: Any) -> None:
    """Put something in the place of a dataset, with its attributes."""
    name, attributes = item.name, dict(item.attrs)
    del file[name]
    if made:
        file.create_dataset(name, **made)
    else:
        file[name] = value
    if not isinstance(value, h5py.ExternalLink | h5py.SoftLink):
        file[name].attrs.update(attributes)


def _shorter(file: h5py.File, item: Any, by: Tampering) -> None:
    content = item[()]
    _in_place(file, item, content[: by.which % 3] if by.which % 2 else np.stack([content] * 2))


def _stored_elsewhere(file: h5py.File, item: Any, by: Tampering) -> None:
    elsewhere = [("secret.bin", 0, h5py.h5f.UNLIMITED)]
    _in_place(file, item, shape=item.shape, dtype=item.dtype, external=elsewhere)


_TAMPERINGS: dict[str, Callable[[h5py.File, Any, Tampering], None]] = {
    "attribute": lambda file, item, by: _attribute(item, by),
    "no attribute": lambda file, item, by: _no_attribute(item, by),
    "remove": lambda file, item, by: file.__delitem__(item.name),
    "other": lambda file, item, by: _in_place(file, item, by.array),
    "shape": _shorter,
    "element": lambda file, item, by: _element(item, by),
    "external link": lambda file, item, by: _in_place(file, item, h5py.ExternalLink("secret.h5", "/secret")),
    "external storage": _stored_elsewhere,
    "loop": lambda file, item, by: _in_place(file, item, h5py.SoftLink(item.name if by.which % 2 else "/")),
}

_OF_DATASETS = ("other", "shape", "element", "external storage")

of_hdf5 = st.builds(
    Tampering, st.sampled_from(sorted(_TAMPERINGS)), st.integers(0, 10_000), nasty.plain | nasty.numbers
)
