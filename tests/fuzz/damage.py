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

BYTES = ("flip", "set", "cut", "insert", "remove", "repeat", "zero")
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
        before, after = content[:at], content[at:]
        match self.kind:
            case "flip":
                return before + bytes(byte ^ (1 << self.amount % 8) for byte in after[:1]) + after[1:]
            case "set":
                return before + bytes([self.amount % 256]) + after[1:]
            case "cut":
                return before
            case "insert":
                return (
                    before
                    + bytes((self.amount * step) % 256 for step in range(1, 1 + self.amount % 40))
                    + after
                )
            case "remove":
                return before + after[self.amount :]
            case "repeat":
                return before + after[: self.amount] + after
            case "zero":
                return before + bytes(len(after[: self.amount])) + after[self.amount :]
        return before + self.text.encode(errors="replace") + after

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


of_bytes = _damages((*BYTES, *["flip"] * 10))
"""Of files that are no text; single bits most of all."""

of_text = _damages((*BYTES, *LINES))


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


def _attribute(file: h5py.File, item: Any, by: Tampering) -> None:
    names = list(item.attrs)
    item.attrs[names[by.which % len(names)] if names else "kind"] = by.array


def _no_attribute(file: h5py.File, item: Any, by: Tampering) -> None:
    names = list(item.attrs)
    if names:
        del item.attrs[names[by.which // 7 % len(names)]]


def _remove(file: h5py.File, item: Any, by: Tampering) -> None:
    del file[item.name]


def _other(file: h5py.File, item: Any, by: Tampering) -> None:
    attributes = dict(item.attrs)
    del file[item.name]
    file[item.name] = by.array
    file[item.name].attrs.update(attributes)


def _shorter(file: h5py.File, item: Any, by: Tampering) -> None:
    content, attributes = item[()], dict(item.attrs)
    del file[item.name]
    file[item.name] = content[: by.which % 3] if by.which % 2 else np.stack([content] * 2)
    file[item.name].attrs.update(attributes)


def _element(file: h5py.File, item: Any, by: Tampering) -> None:
    content = item[()]
    flat = content.reshape(-1)
    if not len(flat):
        return
    flat[by.which // 5 % len(flat)] += 1
    item[...] = content


def _external_link(file: h5py.File, item: Any, by: Tampering) -> None:
    name = item.name
    del file[name]
    file[name] = h5py.ExternalLink("secret.h5", "/secret")


def _external_storage(file: h5py.File, item: Any, by: Tampering) -> None:
    name, shape, dtype, attributes = item.name, item.shape, item.dtype, dict(item.attrs)
    del file[name]
    made = file.create_dataset(name, shape, dtype, external=[("secret.bin", 0, h5py.h5f.UNLIMITED)])
    made.attrs.update(attributes)


def _loop(file: h5py.File, item: Any, by: Tampering) -> None:
    name = item.name
    del file[name]
    file[name] = h5py.SoftLink(name if by.which % 2 else "/")


_TAMPERINGS: dict[str, Callable[[h5py.File, Any, Tampering], None]] = {
    "attribute": _attribute,
    "no attribute": _no_attribute,
    "remove": _remove,
    "other": _other,
    "shape": _shorter,
    "element": _element,
    "external link": _external_link,
    "external storage": _external_storage,
    "loop": _loop,
}

_OF_DATASETS = ("other", "shape", "element", "external storage")

of_hdf5 = st.builds(
    Tampering, st.sampled_from(sorted(_TAMPERINGS)), st.integers(0, 10_000), nasty.plain | nasty.numbers
)
