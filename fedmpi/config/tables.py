"""Nested settings: dotted keys, merging, closest names."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import date, time
from typing import Any

from fedmpi.config.documents import OutOfBounds, parse_toml, refuse_unbounded, short
from fedmpi.errors import BadInput

Settings = dict[str, Any]


def merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> Settings:
    """Return `base` changed by `change`.

    Tables merge key by key; a table that names itself (``name = ...``) or a plain
    value replaces what was there. A plain name that meets a table without a name
    becomes that table's ``name``: ``"fedprox"`` and ``{mu = 0.1}`` give both.
    """
    merged = dict(base)
    for key, value in change.items():
        present = merged.get(key)
        if isinstance(value, Mapping) and "name" not in value:
            if isinstance(present, str):
                present = {"name": present}
            merged[key] = merge(present if isinstance(present, Mapping) else {}, value)
        elif isinstance(value, str) and isinstance(present, Mapping) and "name" not in present:
            merged[key] = {**present, "name": value}
        else:
            merged[key] = dict(value) if isinstance(value, Mapping) else value
    return merged


def nested(dotted: str, value: Any) -> Settings:
    """Return ``{"a": {"b": value}}`` for ``"a.b"``."""
    for part in reversed(dotted.split(".")):
        value = {part: value}
    return value  # type: ignore[no-any-return]


def value_at(settings: Mapping[str, Any], dotted: str) -> Any:
    """Return the value of a dotted key; None where there is none."""
    value: Any = settings
    for part in dotted.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def look_up(settings: Mapping[str, Any], dotted: str) -> Any:
    """Return the value of a dotted key, of a table that names itself the name; None where there is none."""
    value = value_at(settings, dotted)
    return value.get("name", value) if isinstance(value, Mapping) else value


def parse_override(text: str) -> tuple[str, Any]:
    """Return key and value of ``key=value``; the value is TOML where it is that, else text.

    Raises
    ------
    BadInput
        There is no ``=`` or no key, or the value is beyond the bounds of `fedmpi.config.documents`.
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")) or "\n" in text:
        raise BadInput(f"--set {short(text)}: write it as key=value, for example --set algorithm=fedavg")
    try:
        parsed = _parsed(value)
        refuse_unbounded(nested(key, parsed))
    except OutOfBounds as error:
        raise BadInput(f"--set {short(text)!r}: {error}") from error
    return key, parsed


def _parsed(value: str) -> Any:
    """Return what a text says as TOML, or the text where it is none."""
    try:
        return parse_toml(f"value = {value}")["value"]
    except OutOfBounds:
        raise
    except ValueError:
        return value.strip()


def toml_text(value: Any) -> str:
    """Return a setting's value as TOML, on one line; JSON's text is the same but for tables.

    Raises
    ------
    BadInput
        It is of no kind that TOML has.
    """
    if isinstance(value, Mapping):
        items = (f"{_key(key)} = {toml_text(item)}" for key, item in value.items())
        return "{ " + ", ".join(items) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_text, value)) + "]"
    if not isinstance(value, bool | int | float | str | date | time):
        raise BadInput(f"{value!r}: a setting is text, a number, true or false, a list or a dict")
    return json.dumps(value, default=str, ensure_ascii=False)


def toml_document(document: Mapping[str, Any]) -> str:
    """Return a document as TOML, a line per key."""
    return "".join(f"{_key(key)} = {toml_text(value)}\n" for key, value in document.items())


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def closest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "x"?`` for the known word most like `word`, or nothing.

    Case, hyphens and underscores make no difference, and + is "plus": papers write FED-PUB and GCFL+.
    """
    folded: dict[str, str] = {}
    for each in known:
        folded.setdefault(_folded(each), each)
    matches = difflib.get_close_matches(_folded(word), list(folded), n=1, cutoff=0.5)
    return f'; did you mean "{folded[matches[0]]}"?' if matches else ""


def _folded(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "").replace("+", "plus")
