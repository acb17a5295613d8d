"""Where suites are: a path of the user's, or one of those that travel with the package."""

from __future__ import annotations

from pathlib import Path

from fedmpi.config.tables import closest
from fedmpi.errors import BadInput

RUNS = Path("results") / "runs"
"""Where a suite's cases are put unless told otherwise, below the suite's name."""

_PACKAGE = Path(__file__).parent.parent
_ROOTS = (_PACKAGE / "suites", _PACKAGE.parent / "bench")


def bundled() -> list[str]:
    """Return the names of the suites that come with fedmpi, such as ``gcfl/proteins``."""
    for root in _ROOTS:
        if root.is_dir():
            return sorted(str(path.relative_to(root).with_suffix("")) for path in root.rglob("*.toml"))
    return []


def find(name: str) -> Path:
    """Return the file of a suite: a path, or a bundled name with or without ``bench/`` and ``.toml``.

    Raises
    ------
    BadInput
        There is no such suite.
    """
    path = Path(name)
    if path.is_file():
        return path
    short = name.removeprefix("bench/").removesuffix(".toml")
    for root in _ROOTS:
        candidate = root / f"{short}.toml"
        if candidate.is_file():
            return candidate
    nearest = closest(short, bundled())
    raise BadInput(f"{name}: no such suite or file{nearest} (`fedmpi suites` lists the bundled ones)")
