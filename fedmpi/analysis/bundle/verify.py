"""Checks a bundle: files, records, completeness, tables."""

from __future__ import annotations

import csv
import hashlib
import io
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from fedmpi.analysis import rows
from fedmpi.analysis.bundle import contents
from fedmpi.errors import BadInput
from fedmpi.store import runfile
from fedmpi.store.reader import Run, load_run
from fedmpi.store.schema import config_digest

_MOST_LINES = 20
_LOCAL = ("options",)
"""Columns that depend on the defaults of the fedmpi that makes the table, not only on the record."""


_Record = tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]
"""Configuration, rows and system of a record."""


@dataclass
class Findings:
    """What was checked, and what is wrong: one line each."""

    checked: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def verify(path: Path) -> Findings:
    """Check a bundle.

    Raises
    ------
    BadInput
        The file cannot be read, or is no bundle.
    """
    try:
        with tarfile.open(path, "r:*") as archive, tempfile.TemporaryDirectory() as folder:
            return _Verification(path, archive, Path(folder)).run()
    except (tarfile.TarError, EOFError) as error:
        detail = str(error).partition("\n")[0]
        raise BadInput(f"{path}: no bundle, or a damaged one ({detail})") from error
    except OSError as error:
        raise BadInput(f"{path}: cannot read it ({error.strerror or error})") from error


class _Verification:
    """One pass over an archive; records are unpacked one at a time."""

    def __init__(self, path: Path, archive: tarfile.TarFile, folder: Path) -> None:
        self._archive, self._folder = archive, folder
        self._members = _members(path, archive)
        if contents.INDEX not in self._members:
            raise BadInput(f"{path}: no bundle: there is no {contents.INDEX} in it")
        try:
            self._index = contents.read_index(self._content(contents.INDEX))
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from error
        self._found = Findings()

    def run(self) -> Findings:
        """Do all checks."""
        self._files()
        records = self._records()
        self._completeness({name: config for name, (config, _, _) in records.items()})
        self._tables([row for _, table, _ in records.values() for row in table])
        self._systems([(name, system) for name, (_, _, system) in records.items()])
        return self._found

    def _content(self, path: str) -> bytes:
        stream = self._archive.extractfile(self._members[path])
        assert stream is not None  # `_members` keeps plain files only
        return stream.read()

    def _files(self) -> None:
        """Compare the files with their listed sizes and digests."""
        listed = self._index["files"]
        wrong = [f"{path}: listed, but not in the bundle" for path in listed if path not in self._members]
        extra = [path for path in self._members if path not in listed and path != contents.INDEX]
        wrong += [f"{path}: in the bundle, but not listed" for path in extra]
        for path, (size, digest) in listed.items():
            if path in self._members:
                content = self._content(path)
                if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
                    wrong.append(f"{path}: its content is not the one that was packed (SHA-256 differs)")
        self._say(f"{len(listed)} files: sizes and SHA-256", wrong)

    def _records(self) -> dict[str, _Record]:
        """Read every record; return configuration, rows and system by case."""
        found: dict[str, _Record] = {}
        wrong: list[str] = []
        listed = {str(each["case"]): each for each in self._index.get("cases", [])}
        for path in self._members:
            if not path.endswith(f"/{runfile.NAME}"):
                continue
            case = path.removeprefix("runs/").removesuffix(f"/{runfile.NAME}")
            try:
                run = self._record(path)
                problems = _record_problems(run, listed.get(case))
                found[case] = (run.config, rows.client_rows(run), contents.system_of(run))
            except BadInput as error:
                problems = [str(error).replace(str(self._folder), "").lstrip("/")]
            except (KeyError, IndexError) as error:
                problems = [f"the record lacks {error}"]
            wrong += [f"{path}: {line}" for line in problems]
        wrong += [f"case {case}: listed, but without a record" for case in listed if case not in found]
        self._say(f"{len(found)} records: schema, status, digest of the configuration", wrong)
        return found

    def _record(self, path: str) -> Run:
        file = self._folder / runfile.NAME
        file.write_bytes(self._content(path))
        try:
            return load_run(file)
        finally:
            file.unlink()

    def _completeness(self, found: Mapping[str, Mapping[str, Any]]) -> None:
        if contents.SUITE not in self._members:
            self._found.checked.append("completeness: not checked, there is no suite in the bundle")
            return
        file = self._folder / contents.SUITE
        file.write_bytes(self._content(contents.SUITE))
        try:
            wanted = contents.expected(file)
        except BadInput as error:
            self._found.problems.append(f"{contents.SUITE}: cannot be checked here: {error}")
            return
        wrong = contents.incompleteness(wanted, found)
        self._say(f"completeness: {len(wanted)} cases of the suite", wrong)

    def _tables(self, table: Sequence[Mapping[str, Any]]) -> None:
        """Compare the table with the rows that follow from the records."""
        if contents.CLIENTS not in self._members:
            self._found.problems.append(f"{contents.CLIENTS}: missing")
            return
        stored = _rows(self._content(contents.CLIENTS).decode(errors="replace"))
        followed = _rows(contents.clients_csv(table))
        wrong = []
        if len(stored) != len(followed):
            wrong.append(f"{contents.CLIENTS}: {len(stored)} rows, the records give {len(followed)}")
        for ours, theirs in zip(stored, followed, strict=False):
            for column in ours.keys() & theirs.keys() - set(_LOCAL):
                if ours[column] != theirs[column]:
                    place = f"{theirs.get('case')}, {theirs.get('client')}, {column}"
                    text = f"{ours[column]!r}, the record gives {theirs[column]!r}"
                    wrong.append(f"{contents.CLIENTS}: {place}: {text}")
        self._say(f"{contents.CLIENTS}: {len(stored)} rows follow from the records", sorted(wrong))

    def _systems(self, found: Sequence[tuple[str, dict[str, Any]]]) -> None:
        if contents.SYSTEMS not in self._members:
            self._found.problems.append(f"{contents.SYSTEMS}: missing")
            return
        same = self._content(contents.SYSTEMS).decode(errors="replace") == contents.systems_json(found)
        wrong = [] if same else [f"{contents.SYSTEMS}: not what the records say"]
        self._say(f"{contents.SYSTEMS}: follows from the records", wrong)

    def _say(self, what: str, wrong: Sequence[str]) -> None:
        if not wrong:
            self._found.checked.append(what)
        self._found.problems += wrong[:_MOST_LINES]
        if len(wrong) > _MOST_LINES:
            self._found.problems.append(f"and {len(wrong) - _MOST_LINES} more of this kind")


def _members(path: Path, archive: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    """Return the plain files by their path below the bundle's folder."""
    found: dict[str, tarfile.TarInfo] = {}
    for member in archive.getmembers():
        parts = PurePosixPath(member.name).parts
        if member.isdir():
            continue
        if not member.isfile() or ".." in parts or member.name.startswith("/") or len(parts) < 2:
            raise BadInput(f"{path}: no bundle: {member.name} is not a plain file below one folder")
        found["/".join(parts[1:])] = member
    return found


def _record_problems(run: Run, listed: Mapping[str, Any] | None) -> list[str]:
    problems = []
    if run.status != "complete" or run.rounds_completed != run.rounds:
        problems.append(f"{run.status}, {run.rounds_completed} of {run.rounds} rounds")
    if config_digest(run.config) != run.config_digest:
        problems.append("its configuration is not the one that its digest is of")
    if listed is None:
        problems.append("not among the cases of the index")
    elif listed.get("config_digest") != run.config_digest:
        problems.append("the index has another configuration for this case")
    return problems


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))
