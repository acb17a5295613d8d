"""Makes a bundle: a compressed tar archive."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import fedmpi
from fedmpi.analysis import rows
from fedmpi.analysis.bundle import contents
from fedmpi.analysis.discovery import each_run
from fedmpi.config import locations
from fedmpi.config import suite as suites
from fedmpi.errors import BadInput
from fedmpi.store import disk, runfile
from fedmpi.store.reader import Run
from fedmpi.store.schema import SCHEMA_VERSION


@dataclass(frozen=True)
class Packed:
    """What was packed, a line for each thing that its maker should know, and one for each run left out."""

    path: Path
    runs: int
    bytes: int
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


_MOST_NAMED = 3


def pack(paths: list[Path], target: Path, suite: Path | None = None) -> Packed:
    """Pack the runs of one suite that are complete or have diverged.

    Parameters
    ----------
    paths : list of Path
        Runs, folders of runs, suites.
    target : Path
        The bundle.
    suite : Path, optional
        The suite's file; by default that of `suite_file`.

    Raises
    ------
    BadInput
        There is no such run, a run that has not ended, runs of several suites, a case of the suite
        is missing or has other settings, another suffix than .tar.gz or .tgz, or the bundle cannot be
        written. Nothing is written then.
    """
    if not target.name.endswith((".tar.gz", ".tgz")):
        raise BadInput(f"{target}: a bundle is a compressed tar archive; name it .tar.gz or .tgz")
    problems: list[str] = []
    notes: list[str] = []
    left_out: list[str] = []
    runs = _ended(paths, problems, left_out)
    names = sorted({str(run.config.get("suite", "")) for run in runs})
    if not runs:
        raise BadInput("; ".join([*problems, "no complete run to pack"]))
    if len(names) > 1:
        several = ", ".join(names)
        raise BadInput(f"a bundle holds one suite, these runs are of {several}; pack them one by one")
    suite = suite or suite_file(paths, runs, names[0])
    if suite is None:
        notes.append(f"suite {names[0] or '(none)'}: no such file here, so nobody knows what is missing")
    else:
        try:
            found = {contents.place_of(run): run.config for run in runs}
            problems += contents.incompleteness(contents.expected(suite), found)
        except BadInput as error:
            notes.append(f"the suite cannot be checked here, so nobody knows what is missing: {error}")
    if problems:
        more = len(problems) - _MOST_NAMED
        named = "; ".join(problems[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        advice = "Finish them, or say with --suite which suite these runs are all of"
        raise BadInput(f"nothing packed: {named}. {advice}")
    _write(target, runs, names[0], suite)
    return Packed(target, len(runs), target.stat().st_size, tuple(notes), tuple(left_out))


def _write(target: Path, runs: list[Run], name: str, suite: Path | None) -> None:
    """Write the bundle; it appears under its name only when it is whole."""
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(scratch, "w:gz", compresslevel=6) as archive:
            stem = target.name.removesuffix(".gz").removesuffix(".tar").removesuffix(".tgz")
            _fill(archive, stem or "bundle", runs, name, suite)
        os.replace(scratch, target)
    except OSError as error:
        raise BadInput(f"{target}: cannot write it ({error.strerror})") from error
    finally:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)


def _ended(paths: list[Path], problems: list[str], left_out: list[str]) -> list[Run]:
    """Return the runs that have ended; of two of one case, on as many ranks, the first."""
    found: dict[str, Run] = {}
    for run in each_run(paths, problems):
        name = contents.place_of(run)
        if run.status not in contents.ENDED:
            problems.append(f"{run.folder}: {run.status}")
        elif name in found:
            left_out.append(f"{run.folder}: not packed, {found[name].folder} is the same case")
        else:
            found[name] = run
    return list(found.values())


def _fill(archive: tarfile.TarFile, folder: str, runs: list[Run], name: str, suite: Path | None) -> None:
    """Write all files, the index last, which lists the others; the same runs give the same bytes."""
    table, cases = [], []
    files: list[dict[str, Any]] = []

    def add(path: str, content: bytes) -> None:
        member = tarfile.TarInfo(f"{folder}/{path}")
        member.size, member.mode = len(content), 0o644
        archive.addfile(member, io.BytesIO(content))
        digest = hashlib.sha256(content).hexdigest()
        files.append({"path": path, "bytes": len(content), "sha256": digest})

    for run in runs:
        case = contents.place_of(run)
        table += contents.rows_of(run)
        cases.append({"case": case, "config_digest": run.config_digest, "rounds": run.rounds})
        with disk.open_plain(run.folder / runfile.NAME) as stream:
            add(f"runs/{case}/{runfile.NAME}", stream.read())
    add(contents.CLIENTS, rows.text(table).encode())
    if suite is not None:
        add(contents.SUITE, suite.read_bytes())
    text = contents.READ_ME.format(name=name, version=fedmpi.__version__, count=len(runs))
    add(contents.README, text.encode())
    index = {
        "format": contents.FORMAT,
        "suite": name,
        "packed": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "fedmpi_version": fedmpi.__version__,
        "schema_version": SCHEMA_VERSION,
        "cases": cases,
        "files": files,
    }
    add(contents.INDEX, (json.dumps(index, indent=2) + "\n").encode())


def suite_file(paths: Sequence[Path], runs: Sequence[Run], name: str) -> Path | None:
    """Return the file of the suite `name`; None where it is not here.

    In this order: a file among `paths`; the file that the runs were started with, seen from here or from
    a folder above them; the bundled suite of that name.
    """
    given = (path for path in paths if path.suffix == ".toml" and path.is_file())
    started = (path for run in runs[:1] for path in _started_with(run) if _is_suite(path, name))
    if found := next(chain(given, started), None):
        return found
    with suppress(BadInput):
        return locations.find(name)
    return None


def _started_with(run: Run) -> Iterator[Path]:
    """Yield where the suite may lie that a run's recorded commands name."""
    for attempt in run.attempts:
        words = attempt.provenance.get("command")
        for word in words if isinstance(words, list) else ():
            if isinstance(word, str) and word.endswith(".toml"):
                for folder in (Path(), *run.folder.absolute().parents):
                    yield folder / word


def _is_suite(path: Path, name: str) -> bool:
    try:
        return path.is_file() and suites.read(path).name == name
    except (BadInput, OSError):
        return False
