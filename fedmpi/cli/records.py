"""``fedmpi records pack`` and ``fedmpi records verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedmpi.analysis.bundle.pack import pack as make
from fedmpi.analysis.bundle.verify import verify as check
from fedmpi.cli.options import Plugin, Runs
from fedmpi.cli.terminal import left_out, say
from fedmpi.config import locations
from fedmpi.registry.kinds import load_plugins
from fedmpi.visible import complain


def pack(
    runs: Runs,
    suite: Annotated[
        str | None, typer.Option(help="The suite that they are of: a file, where it is not bundled.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The bundle; default NAME.tar.gz here.")] = None,
    plugin: Plugin = None,
) -> int:
    """Make a bundle of a suite's complete runs, to hand to somebody else.

    Returns
    -------
    int
        0, or 2 if a run was left out (named on the standard error).

    Examples
    --------
    fedmpi records pack gcfl/proteins --out proteins.tar.gz
    """
    load_plugins(plugin or [])
    name = runs[0].with_suffix("").name if runs[0].suffix == ".toml" else runs[0].resolve().name
    packed = make(runs, out or Path(f"{name}.tar.gz"), None if suite is None else locations.find(suite))
    say(f"Bundle: {packed.path}, {packed.runs} runs, {packed.bytes / 1e6:.1f} MB")
    for line in packed.notes:
        complain(line)
    return left_out(packed.left_out)


def verify(
    bundle: Annotated[Path, typer.Argument(help="A bundle made by fedmpi records pack.")],
    plugin: Plugin = None,
) -> int:
    """Check a bundle: files, records, completeness, and that its tables follow from the records.

    Returns
    -------
    int
        0, or 1 if something is wrong with it.

    Examples
    --------
    fedmpi records verify proteins.tar.gz
    """
    load_plugins(plugin or [])
    found = check(bundle)
    for line in found.checked:
        say(f"ok: {line}")
    for line in found.problems:
        say(f"WRONG: {line}")
    say(f"{bundle}: {'not valid' if found.problems else 'valid'}")
    return 1 if found.problems else 0
