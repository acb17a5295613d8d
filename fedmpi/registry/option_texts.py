"""What an options class says of its fields: their meaning, type and range (imports without torch)."""

from __future__ import annotations

import ast
import inspect
import json
import sys
import types
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen, MultipleOf
from pydantic import BaseModel

from fedmpi.config.options import Options

_TYPES = {bool: "true or false", int: "integer", float: "number", str: "text", type(None): "nothing"}
_BOUNDS = {
    Ge: ("at least", "ge"),
    Gt: ("above", "gt"),
    Le: ("at most", "le"),
    Lt: ("below", "lt"),
    MultipleOf: ("a multiple of", "multiple_of"),
}
"""Words for a bound, and the attribute that has it."""

_LARGE = 1 << 31
"""Integers from here on are shown as powers of two where they are some."""


def documented(kind: type[BaseModel]) -> dict[str, str]:
    """Return the meaning of each field: the text below it in its class, else its description; may be empty.

    The texts are read from the source: to have pydantic collect them would cost every command a tenth of
    a second.
    """
    found = {name: info.description or "" for name, info in kind.model_fields.items()}
    for each in reversed(kind.__mro__):
        if issubclass(each, BaseModel) and each not in (BaseModel, Options):
            texts = _texts(each.__module__).get(each.__qualname__, {})
            found |= {name: text for name, text in texts.items() if name in found}
    return found


@cache
def _texts(module: str) -> dict[str, dict[str, str]]:
    """Return the texts below the fields of a module's classes, by qualified name and field."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):  # no source: an archive, the interpreter, a module that is gone
        return {}
    found: dict[str, dict[str, str]] = {}
    _collect(tree, "", found)
    return found


def _collect(node: ast.Module | ast.ClassDef, prefix: str, found: dict[str, dict[str, str]]) -> None:
    for first, second in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(first, ast.ClassDef):
            _collect(first, f"{prefix}{first.name}.", found)
        if not (isinstance(first, ast.AnnAssign) and isinstance(first.target, ast.Name)):
            continue
        if isinstance(second, ast.Expr) and isinstance(second.value, ast.Constant):
            text = " ".join(str(second.value.value).split())
            found.setdefault(prefix.rstrip("."), {})[first.target.id] = text.replace("`", "")


def inner_model(annotation: Any) -> type[BaseModel] | None:
    """Return the options class of a field that is a table, also of one that may be left out."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


def type_of(annotation: Any) -> str:
    """Return what the value of a field with this annotation is, such as ``integer``."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return "choice"
    if origin is Annotated:
        return type_of(parts[0])
    if origin in (Union, types.UnionType):
        return " or ".join(type_of(part) for part in parts)
    if origin is tuple:
        first = get_args(parts[0])[0] if get_origin(parts[0]) is Annotated else parts[0]
        word = {int: "integers", float: "numbers"}.get(first, "texts")
        return f"list of {word}" if parts[-1] is ... else f"{len(parts)} {word}"
    return _TYPES.get(annotation, getattr(annotation, "__name__", str(annotation)))


def values_of(annotation: Any, metadata: Iterable[Any]) -> str:
    """Return which values a field takes, such as ``at least 1, at most 16``; empty where nothing is said."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(json.dumps(part) for part in parts)
    if origin is Annotated:
        return values_of(parts[0], get_args(annotation)[1:])
    if origin in (Union, types.UnionType):
        return " or ".join(filter(None, (values_of(part, ()) for part in parts)))
    bounds = [part for each in metadata for part in getattr(each, "metadata", [each])]
    return ", ".join(filter(None, map(_bound, bounds)))


def _bound(bound: Any) -> str:
    if bound == MinLen(1):
        return "not empty"
    words, attribute = _BOUNDS.get(type(bound), ("", ""))
    return f"{words} {number(getattr(bound, attribute))}" if words else ""


def number(value: Any) -> str:
    """Return a bound as text."""
    if isinstance(value, int) and value >= _LARGE and value & (value - 1) == 0:
        return f"2^{value.bit_length() - 1}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
