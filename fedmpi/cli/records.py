"""``fedmpi records`` and ``fedmpi export``: bundles of runs, damaged ones, formats of other tools."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from fedmpi.analysis import tensorboard as events
from fedmpi.analysis.bundle.pack import pack as make
from fedmpi.analysis.bundle.verify import verify as check
from fedmpi.analysis.discovery import read_or_complain, run_places
from fedmpi.cli.options import Plugin, Runs
from fedmpi.cli.terminal import left_out, say
from fedmpi.config import locations
from fedmpi.errors import BadInput
from fedmpi.store.lock import FolderLock
from fedmpi.store.rebuild import repair as make_whole
from fedmpi.visible import complain


def pack(runs: Runs, suite: str | None = None, out: Path | None = None, plugin: Plugin = None) -> int:
    """Make a bundle of a suite's complete runs, to hand to somebody else.

    Parameters
    ----------
    suite
        The suite that they are of: a file, where it is not bundled.
    out
        The bundle; default NAME.tar.gz here.

    Returns
    -------
    int
        0, or 2 if a run was left out (named on the standard error).

    Examples
    --------
    fedmpi records pack gcfl/proteins --out proteins.tar.gz
    """
    name = runs[0].with_suffix("").name if runs[0].suffix == ".toml" else runs[0].resolve().name
    packed = make(runs, out or Path(f"{name}.tar.gz"), None if suite is None else locations.find(suite))
    say(f"Bundle: {packed.path}, {packed.runs} runs, {packed.bytes / 1e6:.1f} MB")
    for line in packed.notes:
        complain(line)
    return left_out(packed.left_out)


def verify(bundle: Path, plugin: Plugin = None) -> int:
    """Check a bundle: files, records, completeness, and that its tables follow from the records.

    Parameters
    ----------
    bundle
        A bundle made by fedmpi records pack.

    Returns
    -------
    int
        0, or 1 if something is wrong with it.

    Examples
    --------
    fedmpi records verify proteins.tar.gz
    """
    found = check(bundle)
    for line in (*(f"ok: {line}" for line in found.checked), *(f"WRONG: {line}" for line in found.problems)):
        say(line)
    say(f"{bundle}: {'not valid' if found.problems else 'valid'}")
    return 1 if found.problems else 0


def repair(folder: Path) -> int:
    """Rebuild run.h5 from events.jsonl, or events.jsonl from run.h5.

    What was there is kept.

    Parameters
    ----------
    folder
        A run folder whose files are damaged.

    Examples
    --------
    fedmpi records repair results/runs/synthetic/quick/fedavg
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such run folder")
    with FolderLock(folder):
        done = make_whole(folder)
    say(f"{folder}: {done}")
    return 0


def export(runs: Runs, tensorboard: Annotated[Path, typer.Option()]) -> int:
    """Write runs as TensorBoard's event files.

    Parameters
    ----------
    tensorboard
        Folder for TensorBoard event files.

    Returns
    -------
    int
        0, or 2 if anything was left out (named on the standard error).

    Examples
    --------
    fedmpi export results/runs/synthetic/quick --tensorboard tb
    """
    complaints: list[str] = []
    count = 0
    places = dict(run_places(runs, complaints))
    for name, place in zip(_names(places), places.values(), strict=True):
        run = read_or_complain(place, complaints)
        if run is None:
            continue
        if not run.rounds_completed:
            complaints.append(f"{run.folder}: no round is finished, left out")
            continue
        count += 1
        try:
            events.write(run, tensorboard / name)
        except OSError as error:
            raise BadInput(f"{error.filename or tensorboard}: cannot write it ({error.strerror})") from error
    say(f"{count} runs exported to {tensorboard}")
    return left_out(complaints)


def _names(places: Iterable[Path]) -> list[str]:
    """Return the path of each run below the folder that holds all of them, so that no two are alike."""
    folders = [place.parent for place in places]
    top = os.path.commonpath(folders) if folders else ""
    return [os.path.relpath(place, top) for place in places]
