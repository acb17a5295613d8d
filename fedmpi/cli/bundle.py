"""``fedmpi pack`` and ``fedmpi verify``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedmpi.analysis.bundle.pack import pack as make
from fedmpi.analysis.bundle.verify import verify as check
from fedmpi.cli.terminal import say
from fedmpi.config import locations
from fedmpi.registry.kinds import load_plugins
from fedmpi.visible import complain


def pack(paths: list[Path], suite: str | None, out: Path | None, plugins: Sequence[Path] = ()) -> int:
    """Pack a suite's complete runs.

    Returns
    -------
    int
        0.
    """
    load_plugins(plugins)
    name = paths[0].with_suffix("").name if paths[0].suffix == ".toml" else paths[0].resolve().name
    packed = make(paths, out or Path(f"{name}.tar.gz"), None if suite is None else locations.find(suite))
    say(f"Bundle: {packed.path}, {packed.runs} runs, {packed.bytes / 1e6:.1f} MB")
    for line in packed.notes:
        complain(line)
    return 0


def verify(path: Path, plugins: Sequence[Path] = ()) -> int:
    """Check a bundle and say what was checked.

    Returns
    -------
    int
        0, or 1 if something is wrong with it.
    """
    load_plugins(plugins)
    found = check(path)
    for line in found.checked:
        say(f"ok: {line}")
    for line in found.problems:
        say(f"WRONG: {line}")
    say(f"{path}: {'not valid' if found.problems else 'valid'}")
    return 1 if found.problems else 0
