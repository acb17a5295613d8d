"""Writes values as TOML, right or wrong on request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Raw(str):
    """Text that stands in the file as it is."""


def dumps(table: Mapping[str, object]) -> str:
    """Return a table as a file: plain values, then tables under their headings."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            lines.append(f"[{_key(key)}]")
            lines += [f"{_key(inner)} = {_value(each)}" for inner, each in value.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if isinstance(key, Raw) or _BARE.fullmatch(key) else _text(key)


def _text(value: str | bool) -> str:
    """Return a truth value or basic string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    match value:
        case Raw():
            return str(value)
        case bool() | str():
            return _text(value)
        case int() | float():
            return str(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            return f"{{ {', '.join(f'{_key(key)} = {_value(each)}' for key, each in value.items())} }}"
    return '"?"'
