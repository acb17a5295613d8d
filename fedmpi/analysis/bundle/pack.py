"""Makes a bundle: a compressed tar archive."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fedmpi
from fedmpi.analysis import rows
from fedmpi.analysis.bundle import contents
from fedmpi.analysis.discovery import each_run
from fedmpi.config import locations
from fedmpi.errors import BadInput
from fedmpi.store import runfile
from fedmpi.store.reader import Run
from fedmpi.store.schema import SCHEMA_VERSION


@dataclass(frozen=True)
class Packed:
    """What was packed, and a line for each thing that is not in the bundle."""

    path: Path
    runs: int
    bytes: int
    left_out: tuple[str, ...]


class _Archive:
    """A tar archive being written, which knows what is in it; the same files give the same bytes."""

    def __init__(self, archive: tarfile.TarFile, folder: str) -> None:
        self._archive, self._folder = archive, folder
        self.files: list[dict[str, Any]] = []

    def add(self, path: str, content: bytes) -> None:
        """Add a file and remember its size and digest."""
        self._write(path, content)
        digest = hashlib.sha256(content).hexdigest()
        self.files.append({"path": path, "bytes": len(content), "sha256": digest})

    def finish(self, index: Mapping[str, Any]) -> None:
        """Add the index, which lists all other files."""
        text = json.dumps({**index, "files": self.files}, indent=2) + "\n"
        self._write(contents.INDEX, text.encode())

    def _write(self, path: str, content: bytes) -> None:
        member = tarfile.TarInfo(f"{self._folder}/{path}")
        member.size, member.mode = len(content), 0o644
        self._archive.addfile(member, io.BytesIO(content))


def pack(paths: list[Path], target: Path, suite: Path | None = None) -> Packed:
    """Pack the complete runs of one suite.

    Parameters
    ----------
    paths : list of Path
        Runs, folders of runs, suites.
    target : Path
        The bundle.
    suite : Path, optional
        The suite's file; by default the one among `paths`, or the bundled one of that name.

    Raises
    ------
    BadInput
        There is no complete run, runs of several suites, another suffix than .tar.gz or .tgz, or the
        bundle cannot be written.
    """
    if not target.name.endswith((".tar.gz", ".tgz")):
        raise BadInput(f"{target}: a bundle is a compressed tar archive; name it .tar.gz or .tgz")
    left_out: list[str] = []
    runs = _complete(paths, left_out)
    suites = sorted({str(run.config.get("suite", "")) for run in runs})
    if not runs:
        raise BadInput("; ".join([*left_out, "no complete run to pack"]))
    if len(suites) > 1:
        raise BadInput(
            f"a bundle holds one suite, these runs are of {', '.join(suites)}; pack them one by one"
        )
    suite = suite or _suite_file(paths, suites[0])
    if suite is None:
        left_out.append(
            f"suite {suites[0] or '(none)'}: no such file here, so the bundle cannot say what is missing"
        )
    else:
        left_out += _missing(suite, runs)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(target, "w:gz", compresslevel=6) as archive:
            _fill(_Archive(archive, _stem(target)), runs, suites[0], suite)
    except OSError as error:
        raise BadInput(f"{target}: cannot write it ({error.strerror})") from error
    return Packed(target, len(runs), target.stat().st_size, tuple(left_out))


def _stem(target: Path) -> str:
    return target.name.removesuffix(".gz").removesuffix(".tar").removesuffix(".tgz") or "bundle"


def _complete(paths: list[Path], left_out: list[str]) -> list[Run]:
    """Return the complete runs; of two with one case name the first."""
    found: dict[str, Run] = {}
    for run in each_run(paths, left_out):
        name = str(run.config.get("name", run.folder.name))
        if run.status != "complete":
            left_out.append(f"{run.folder}: {run.status}, not packed")
        elif name in found:
            left_out.append(f"{run.folder}: not packed, {found[name].folder} is the same case")
        else:
            found[name] = run
    return list(found.values())


def _suite_file(paths: list[Path], name: str) -> Path | None:
    """Return the suite's file: one that was named, or the bundled one of its name."""
    for path in paths:
        if path.suffix == ".toml" and path.is_file():
            return path
    try:
        return locations.find(name)
    except BadInput:
        return None


def _missing(suite: Path, runs: list[Run]) -> list[str]:
    try:
        wanted = contents.expected(suite)
    except BadInput as error:
        return [f"the suite cannot be checked here, so nobody knows what is missing: {error}"]
    return contents.incompleteness(wanted, {str(run.config["name"]): run.config for run in runs})


def _fill(archive: _Archive, runs: list[Run], name: str, suite: Path | None) -> None:
    table, systems, cases = [], [], []
    for run in runs:
        case = str(run.config.get("name", run.folder.name))
        table += rows.client_rows(run)
        systems.append((case, contents.system_of(run)))
        cases.append({"case": case, "config_digest": run.config_digest, "rounds": run.rounds})
        archive.add(f"runs/{case}/{runfile.NAME}", (run.folder / runfile.NAME).read_bytes())
    archive.add(contents.CLIENTS, contents.clients_csv(table).encode())
    archive.add(contents.SYSTEMS, contents.systems_json(systems).encode())
    if suite is not None:
        archive.add(contents.SUITE, suite.read_bytes())
    text = contents.READ_ME.format(name=name, version=fedmpi.__version__, count=len(runs))
    archive.add(contents.README, text.encode())
    index = {
        "format": contents.FORMAT,
        "suite": name,
        "packed": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "fedmpi_version": fedmpi.__version__,
        "schema_version": SCHEMA_VERSION,
        "cases": cases,
    }
    archive.finish(index)
