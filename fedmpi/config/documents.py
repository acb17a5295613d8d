"""Text of others (TOML, JSON, CSV), read within bounds: whatever it holds, what is wrong is one line."""

from __future__ import annotations

import csv
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedmpi.errors import BadInput

MOST_BYTES = 2**24
"""Size of a file; the largest bundled suite has 6 kB, a submission of 20,000 cases up to 5 MB."""
MOST_CSV_BYTES = 2**26
"""Size of a file of rows; a row takes some 500 bytes."""
MOST_LEVELS = 32
"""Tables and lists in one another, dotted keys included."""
MOST_KEY_CHARACTERS = 255
_LARGEST_INTEGER = 2**63
"""Integers are TOML's: of 64 bits."""
_BLANKS = "\t\n\r"
"""Control characters that text may hold."""


class OutOfBounds(ValueError):
    """A document holds what no suite, system or record has use for; the message says what and where."""


def load_toml(path: Path, what: str) -> dict[str, Any]:
    """Return a TOML file's tables.

    Parameters
    ----------
    path : Path
    what : str
        What the file is, for the message, such as "suite".

    Raises
    ------
    BadInput
        It cannot be read, is no TOML, or goes beyond the bounds of this module.
    """
    try:
        return parse_toml(_text(path, what))
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables that a TOML text says.

    Raises
    ------
    ValueError
        It is no TOML; the message is one line.
    OutOfBounds
        A kind of ValueError: it goes beyond the bounds of this module.
    """
    return _table(tomllib.loads, text, "TOML")


def load_json(path: Path, what: str) -> dict[str, Any]:
    """Return a JSON file's object; parameters and errors are those of `load_toml`."""
    try:
        return parse_json(_text(path, what))
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error


def parse_json(text: str) -> dict[str, Any]:
    """Return the object that a JSON text says; errors are those of `parse_toml`."""
    return _table(json.loads, text, "JSON")


def load_csv(path: Path, check: Callable[[tuple[str, ...]], None]) -> list[tuple[int, dict[str, Any]]]:
    """Return each row of a CSV file with the number of its line.

    Parameters
    ----------
    path : Path
    check : callable
        Gets the names of the columns before a row is read; raises where they are others than wanted.

    Raises
    ------
    BadInput
        The file cannot be read, or a row has other columns than the first.
    """
    try:
        if path.is_char_device():
            raise BadInput(f"{path}: a device, no file of rows")
        with path.open(newline="", encoding="utf-8") as stream:
            if os.fstat(stream.fileno()).st_size > MOST_CSV_BYTES:
                raise BadInput(f"{path}: cannot read these rows (more than {MOST_CSV_BYTES:,} bytes)")
            reader = csv.DictReader(stream)
            check(tuple(reader.fieldnames or ()))
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: cannot read these rows ({_reason(error)})") from error
    for line, row in rows:
        if None in row or None in row.values():
            raise BadInput(f"{path}, line {line}: not as many cells as columns; the file is damaged")
    return rows


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "not text" if isinstance(error, UnicodeDecodeError) else str(error)


def _text(path: Path, what: str) -> str:
    try:
        if not path.is_file():  # a pipe would be waited for, a device has no end
            raise ValueError(f"cannot read this {what} (not a file)")
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"cannot read this {what} (more than {MOST_BYTES:,} bytes)")
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read this {what} ({_reason(error)})") from error


def _table(parse: Callable[[str], Any], text: str, kind: str) -> dict[str, Any]:
    try:
        value = parse(text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        hint = "; text needs quotes" if "Invalid value" in str(error) else ""
        raise ValueError(f"not {kind}: {error}{hint}") from error
    except RecursionError as error:
        raise OutOfBounds(f"brackets deeper than {MOST_LEVELS} levels") from error
    except ValueError as error:  # Python refuses to convert thousands of digits
        raise OutOfBounds("a number of more than 64 bits") from error
    if not isinstance(value, dict):
        raise ValueError(f"not {kind}: no table")
    refuse_unbounded(value)
    return value


def refuse_unbounded(document: Mapping[str, Any]) -> None:
    """Raise OutOfBounds where a value or a key is beyond the bounds; its place is in the message."""
    left: list[tuple[Any, int, str]] = [(document, 0, "")]
    while left:
        value, level, place = left.pop()
        if level > MOST_LEVELS:
            raise OutOfBounds(f"{short(place)}: deeper than {MOST_LEVELS} levels")
        if isinstance(value, dict):
            for key, item in value.items():
                _refuse_key(key, place)
                left.append((item, level + 1, f"{place}.{key}" if place else key))
        elif isinstance(value, list):
            left += [(item, level + 1, place) for item in value]
        elif isinstance(value, str):
            _refuse_control_characters(value, place)
        elif isinstance(value, int) and not -_LARGEST_INTEGER <= value < _LARGEST_INTEGER:
            raise OutOfBounds(f"{short(place)}: an integer of more than 64 bits")


def _refuse_key(key: str, place: str) -> None:
    if len(key) > MOST_KEY_CHARACTERS:
        raise OutOfBounds(f"{short(place or key)}: a key of more than {MOST_KEY_CHARACTERS} characters")
    _refuse_control_characters(key, place or key)


def _refuse_control_characters(text: str, place: str) -> None:
    for character in text:
        control = (character < " " and character not in _BLANKS) or character == "\x7f"
        if control or "\ud800" <= character <= "\udfff":
            raise OutOfBounds(f"{short(ascii(place)[1:-1])}: text with the character {character!r}")


def short(text: str) -> str:
    """Return a text for a message, the end of one that would fill the screen left out."""
    return text if len(text) <= 60 else f"{text[:60]}..."
