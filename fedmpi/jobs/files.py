"""Where the job scripts, templates and systems are that travel with the package."""

from __future__ import annotations

from pathlib import Path

import fedmpi

_PACKAGE = Path(fedmpi.__file__).parent
_ROOTS = (_PACKAGE / "job_scripts", _PACKAGE.parent / "jobs")


def folder(name: str) -> Path:
    """Return ``systems`` or ``templates`` of the installed package or of the checkout."""
    return next(path for root in _ROOTS if (path := root / name).is_dir())
