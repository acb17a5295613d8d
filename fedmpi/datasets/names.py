"""Dataset names: groups, TU datasets, own folders, and what was probably meant by a wrong one."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from fedmpi.config.documents import short
from fedmpi.datasets.moleculenet import MOLECULES
from fedmpi.datasets.tables import GROUPS, KNOWN, SYNTHETIC
from fedmpi.errors import BadInput

_TU_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
"""Names a folder and an archive: short enough for both."""


JOIN = "+"
"""Joins datasets: ``PROTEINS+DD`` stands for the two in this order."""


def is_folder(name: str) -> bool:
    """Tell whether a name is the path of an own folder in TU format."""
    return name not in GROUPS and ("/" in name or os.sep in name)


def own_folder(name: str) -> tuple[Path, str]:
    """Return folder and file stem of an own dataset: ``./mydata/FOO`` holds ``FOO_A.txt`` and so on."""
    try:
        folder = Path(name).expanduser().absolute()
        folder.exists()
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"'{short(name)}' cannot be the path of a dataset: {reason}") from error
    return folder, folder.name


def members(name: str) -> tuple[str, ...]:
    """Return the datasets behind a name: those of a group, those joined by `JOIN`, or the one.

    None for the synthetic domains.

    Raises
    ------
    BadInput
        The name can be no dataset's, or names one twice.
    """
    if name == SYNTHETIC:
        return ()
    if name in GROUPS:
        return GROUPS[name]
    if JOIN in name and not is_folder(name):
        parts = name.split(JOIN)
        if len(set(parts)) < len(parts):
            raise BadInput(f"'{name}' names a dataset twice")
        return tuple(member for part in parts for member in _single(part))
    return _single(name)


def _single(name: str) -> tuple[str, ...]:
    if not is_folder(name) and not _TU_NAME.fullmatch(name):
        raise BadInput(
            f"'{short(name)}' is no dataset name{meant(name)}; 'fedmpi data list' shows those known"
        )
    return (name,)


def meant(name: str) -> str:
    """Return `` (did you mean A, B?)`` for a wrong name, or nothing where none is close."""
    names = {known.lower(): known for known in (*KNOWN, *MOLECULES, *GROUPS, SYNTHETIC)}
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.6)
    return f" (did you mean {', '.join(names[key] for key in close)}?)" if close else ""
