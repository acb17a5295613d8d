"""Names of suites and cases, which become folders."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedmpi.errors import BadInput

_PART = r"[A-Za-z0-9_+=-][A-Za-z0-9._+=-]*"
_NAME = re.compile(rf"{_PART}(/{_PART})*")
"""Names become folders below the output folder: no part may be `.`, `..` or empty."""

MOST_NAME_CHARACTERS = 255
"""Of one folder; file systems count bytes, and names are ASCII."""
_KEPT_CHARACTERS = 160
"""Of a name that is too long: room for what analyses append."""


def refuse_no_name(path: Path, name: Any) -> None:
    """Raise BadInput for what can be no suite's name, because it can be no folder's."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(f"{path}: name: letters, digits, . _ + = - and / between parts, such as gcfl/proteins")
    if max(map(len, name.split("/"))) > MOST_NAME_CHARACTERS:
        raise BadInput(f"{path}: name: a part has more than {MOST_NAME_CHARACTERS} characters")


def case_name(parts: Sequence[str]) -> str:
    """Return the name of the case with these labels, in the order of the axes: a folder's name."""
    return _shortened(re.sub(r"[^A-Za-z0-9._=+-]", "_", "-".join(parts)).lstrip(".") or "case")


def readable(override: str) -> str:
    """Return an override as a part of a name: without blanks, quotes and brackets."""
    return re.sub(r"[\s\"'{}\[\]]", "", override).replace(",", "+")


def _shortened(name: str) -> str:
    """Return a case's name; of one that no folder can have its begin, and a digest that keeps it unique."""
    if len(name) <= MOST_NAME_CHARACTERS:
        return name
    return f"{name[:_KEPT_CHARACTERS]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
