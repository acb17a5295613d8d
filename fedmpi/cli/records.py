"""``fedmpi records``: bundles of runs, damaged ones."""

from __future__ import annotations

from pathlib import Path

from fedmpi.analysis.bundle.pack import pack as make
from fedmpi.analysis.bundle.verify import verify as check
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
