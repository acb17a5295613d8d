"""Checks a bundle: files, records, completeness, tables."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedmpi.analysis import rows
from fedmpi.analysis.bundle import contents
from fedmpi.analysis.bundle.archive import Archive, opened
from fedmpi.errors import BadInput
from fedmpi.store import runfile
from fedmpi.store.checks import SEALED
from fedmpi.store.reader import Run, load_run
from fedmpi.store.schema import config_digest

_MOST_LINES = 20
_PREFIX = f"{runfile.NAME}: "
_LOCAL = ("options",)
"""Columns that depend on the defaults of the fedmpi that makes the table, not only on the record."""


_Record = tuple[dict[str, Any], list[dict[str, Any]]]
"""Configuration and rows of a record."""


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
    with opened(path) as archive, tempfile.TemporaryDirectory() as folder:
        return _Verification(archive, Path(folder)).run()


class _Verification:
    """One pass over an archive; records are unpacked one at a time."""

    def __init__(self, archive: Archive, folder: Path) -> None:
        self._archive, self._folder, self._members = archive, folder, archive.members
        if contents.INDEX not in self._members:
            raise BadInput(f"{archive.path}: no bundle: there is no {contents.INDEX} in it")
        self._index = contents.read_index(archive.path, archive.content(contents.INDEX))
        self._found = Findings()

    def run(self) -> Findings:
        """Do all checks."""
        self._files()
        records = self._records()
        self._completeness({name: config for name, (config, _) in records.items()})
        self._tables([row for _, table in records.values() for row in table])
        return self._found

    def _files(self) -> None:
        """Compare the files with their listed sizes and digests."""
        listed = {each.path: each for each in self._index.files}
        wrong = [f"{path}: listed, but not in the bundle" for path in listed if path not in self._members]
        extra = [path for path in self._members if path not in listed and path != contents.INDEX]
        wrong += [f"{path}: in the bundle, but not listed" for path in extra]
        for path in listed.keys() & self._members.keys():
            same = listed[path].bytes == self._members[path].size
            if not same or self._archive.digest(path) != listed[path].sha256:
                wrong.append(f"{path}: its content is not the one that was packed (SHA-256 differs)")
        self._say(f"{len(listed)} files: sizes and SHA-256", wrong)

    def _records(self) -> dict[str, _Record]:
        """Read every record; return configuration and rows by case."""
        found: dict[str, _Record] = {}
        wrong: list[str] = []
        old = diverged = 0
        listed = {each.case: each for each in self._index.cases}
        order = {f"runs/{each.case}/{runfile.NAME}": place for place, each in enumerate(self._index.cases)}
        records = [path for path in self._members if path.endswith(f"/{runfile.NAME}")]
        for path in sorted(records, key=lambda path: (order.get(path, len(order)), path)):
            case = path.removeprefix("runs/").removesuffix(f"/{runfile.NAME}")
            try:
                self._archive.unpack(path, self._folder / runfile.NAME)
                run = load_run(self._folder / runfile.NAME)
                problems = _record_problems(run, case, listed.get(case))
                found[case] = _figures(run)
                old += run.schema_version < SEALED
                diverged += run.status == "diverged"
            except BadInput as error:
                problems = [str(error).replace(str(self._folder), "").lstrip("/").removeprefix(_PREFIX)]
            wrong += [f"{path}: {line}" for line in problems]
        wrong += [f"case {case}: listed, but without a record" for case in listed if case not in found]
        self._say(f"{len(found)} records: nothing outside them, schema, status, configuration", wrong)
        if found and not wrong:
            without = f"; {old} of an older schema have none" if old else ""
            if diverged:
                self._found.checked.append(f"runs that have diverged, without rows: {diverged}")
            self._found.checked.append(f"digests of all rounds of {len(found) - old} records{without}")
        return found

    def _completeness(self, found: Mapping[str, Mapping[str, Any]]) -> None:
        if contents.SUITE not in self._members:
            self._found.checked.append("completeness: not checked, there is no suite in the bundle")
            return
        file = self._folder / contents.SUITE
        file.write_bytes(self._archive.content(contents.SUITE))
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
        text = self._archive.content(contents.CLIENTS).decode(errors="replace")
        stored, followed = _rows(text), _rows(rows.text(table))
        wrong = []
        if len(stored) != len(followed):
            wrong.append(f"{len(stored)} rows, the records give {len(followed)}")
        for ours, theirs in zip(stored, followed, strict=False):
            for column in ours.keys() & theirs.keys() - set(_LOCAL):
                if ours[column] != theirs[column]:
                    place = f"{theirs.get('case')}, {theirs.get('client')}, {column}"
                    wrong.append(f"{place}: {ours[column]!r}, the record gives {theirs[column]!r}")
        lines = sorted(f"{contents.CLIENTS}: {line}" for line in wrong)
        self._say(f"{contents.CLIENTS}: {len(stored)} rows follow from the records", lines)

    def _say(self, what: str, wrong: Sequence[str]) -> None:
        if not wrong:
            self._found.checked.append(what)
        self._found.problems += wrong[:_MOST_LINES]
        if len(wrong) > _MOST_LINES:
            self._found.problems.append(f"and {len(wrong) - _MOST_LINES} more of this kind")


def _figures(run: Run) -> _Record:
    """Return what the tables are made from.

    Raises
    ------
    BadInput
        The record says something that no figure can be made of.
    """
    try:
        return run.config, contents.rows_of(run)
    except BadInput:
        raise
    except Exception as error:  # a record of anybody may hold any values; what they end in is its fault
        raise BadInput(f"no figures follow from it ({type(error).__name__}: {error})") from error


def _record_problems(run: Run, case: str, listed: contents.ListedCase | None) -> list[str]:
    problems = []
    if run.status not in contents.ENDED:
        problems.append(f"{run.status}, {run.rounds_completed} of {run.rounds} rounds")
    if config_digest(run.config) != run.config_digest:
        problems.append("its configuration is not the one that its digest is of")
    above = case.rpartition("/")[0]
    if above and above != contents.ranks_folder(run):
        problems.append(f"in {above}, but the run is one of {contents.ranks_folder(run)}")
    if listed is None:
        problems.append("not among the cases of the index")
    elif listed.config_digest != run.config_digest:
        problems.append("the index has another configuration for this case")
    return problems


def _rows(text: str) -> list[dict[str, str]]:
    try:
        return list(csv.DictReader(io.StringIO(text)))
    except csv.Error:
        return []
