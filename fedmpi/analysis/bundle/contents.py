"""What lies in a bundle, and what follows from its records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from fedmpi.analysis import rows
from fedmpi.config import modes
from fedmpi.config import suite as suites
from fedmpi.errors import BadInput
from fedmpi.registry.check import check_suite
from fedmpi.store import stored
from fedmpi.store.reader import Run
from fedmpi.store.stored import Stored

FORMAT = 2
"""Its table names the metric of each run; that of format 1 had columns of accuracy."""
INDEX, SUITE, README = "bundle.json", "suite.toml", "README.md"
CLIENTS = "tables/clients.csv"

ENDED = ("complete", "diverged")
"""Statuses of runs in a bundle. A run that diverges does so every time; the table has no row of it."""

READ_ME = """# Results of {name}

A bundle of fedmpi {version}: the records of {count} finished runs and what belongs to them.

| | |
|---|---|
| `runs/CASE/run.h5` | the records (HDF5; docs/results-format.md of fedmpi says what is in them) |
| `runs/ranksP/CASE/run.h5` | those of a scaling suite, which runs a case on several numbers of ranks P |
| `tables/clients.csv` | a row per run and client; follows from the records |
| `suite.toml` | the suite, where it was known |
| `bundle.json` | versions, cases, size and SHA-256 of every file |

`fedmpi records verify BUNDLE` checks it; after unpacking, `fedmpi report DIR --html page.html` shows it, with
the machines and versions.
"""


def rows_of(run: Run) -> list[dict[str, Any]]:
    """Return a run's rows in the table; none where it has diverged."""
    return [] if run.status == "diverged" else rows.client_rows(run)


def ranks_folder(run: Run) -> str:
    """Return the name of the folder in which a scaling suite has runs on so many ranks as this one."""
    return modes.place(Path(), run.attempts[-1].ranks if run.attempts else 0).name


def place_of(run: Run) -> str:
    """Return where a record lies below ``runs``: in ``ranksP/CASE`` if it lies so here, else in ``CASE``."""
    above = ranks_folder(run)
    apart = run.folder.resolve().parent.name == above
    return str(Path(above if apart else "") / str(run.config.get("name", run.folder.name)))


def expected(path: Path) -> dict[str, dict[str, Any]]:
    """Return the configuration of every case of a suite, by the place of its record.

    Raises
    ------
    BadInput
        The suite cannot be checked here, for instance as its algorithm is a plug-in.
    """
    found = [(each.case, ranks) for each in check_suite(suites.read(path)) for ranks in each.ranks or (0,)]
    return {str(modes.place(Path(), ranks) / case.name): case.config() for case, ranks in found}


def incompleteness(
    wanted: Mapping[str, Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return a line for each case of a suite that is not there, or there with other settings.

    Settings that the record does not know are those of a later fedmpi and count as its defaults.
    """
    lines = [f"case {name}: not in the bundle" for name in wanted if name not in found]
    for name in (name for name in wanted if name in found):
        if other := _differences(wanted[name], found[name]):
            lines.append(f"case {name}: other settings than the suite's ({', '.join(other)})")
    return lines


def _differences(wanted: Mapping[str, Any], recorded: Mapping[str, Any], prefix: str = "") -> list[str]:
    lines = []
    for name, value in recorded.items():
        if isinstance(value, Mapping) and isinstance(wanted.get(name), Mapping):
            lines += _differences(wanted[name], value, f"{prefix}{name}.")
        elif name in wanted and wanted[name] != value and name != "suite":
            lines.append(f"{prefix}{name}: {wanted[name]} -> {value}")
    return lines


class File(Stored):
    """A file of the bundle, as the index lists it."""

    path: stored.Name
    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ListedCase(Stored):
    """A case of the bundle, as the index lists it."""

    case: stored.Name
    config_digest: stored.Text
    rounds: stored.Rounds


class Index(Stored):
    """The index of a bundle."""

    format: Annotated[int, Field(ge=1)]
    suite: stored.Text
    packed: stored.Text
    fedmpi_version: stored.Text
    schema_version: stored.Version
    cases: list[ListedCase]
    files: list[File]


def read_index(bundle: Path, text: bytes) -> Index:
    """Return the index of a bundle.

    Raises
    ------
    BadInput
        It is none, or one of a later format.
    """
    try:
        index = json.loads(text)
        version = index.get("format") if isinstance(index, dict) else None
        if not isinstance(version, int) or version == FORMAT:
            return Index.model_validate(index)
    except (ValueError, RecursionError) as error:
        why = f" ({stored.in_words(error)})" if isinstance(error, ValidationError) else ""
        raise BadInput(f"{bundle}: {INDEX} is not the index of a bundle{why}") from error
    later = f"this fedmpi reads up to {FORMAT}; update fedmpi"
    why = later if version > FORMAT else "its table has older columns; pack its runs again"
    raise BadInput(f"{bundle}: a bundle of format {version}, {why}")
