"""Configuration and provenance stored in a record, which another fedmpi or somebody else may have written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Never

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedmpi.errors import BadInput
from fedmpi.store.reader import Run, load_run

_Text = Annotated[str, Field(max_length=4096)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class _Named(_Part):
    name: _Text


class _Partition(_Named):
    seed: _Count = 0


class _Kinds(_Part):
    """Of what kind a setting is that analyses read, where the configuration has it."""

    suite: _Text = ""
    name: _Text = ""
    rounds: _Count = 0
    seed: _Count = 0
    dataset: _Named | None = None
    partition: _Partition | None = None
    model: _Named | None = None
    objective: _Named | None = None
    algorithm: _Named | _Text = ""


class _Source(_Part):
    commit: _Text = ""


class _Rank(_Part):
    cores: list[_Count] = []


class _Mpi(_Part):
    ranks: list[_Rank] = []


class _Origin(_Part):
    """Of what kind the parts of an attempt's provenance are that analyses read."""

    source: _Source = _Source()
    mpi: _Mpi = _Mpi()
    packages: dict[str, dict[str, Any]] = {}
    datasets: dict[str, _Text] = {}
    parameters: list[_Count] = []
    rank_of_client: list[_Count] | None = None


class _Stored(dict[str, Any]):
    """A table of a stored configuration; a setting that it lacks is an error of the record."""

    def __init__(self, table: dict[str, Any], folder: Path, prefix: str = "") -> None:
        super().__init__(table)
        self._folder, self._prefix = folder, prefix
        for key, value in table.items():
            if isinstance(value, dict):
                self[key] = _Stored(value, folder, f"{prefix}{key}.")

    def __or__(self, other: Mapping[str, Any]) -> _Stored:  # type: ignore[override]
        """Return the table with other values; what it lacks stays an error of the record."""
        return _Stored({**self, **other}, self._folder, self._prefix)

    def __missing__(self, key: object) -> Never:
        name = f"{self._prefix}{key}"
        raise BadInput(f"{self._folder}: its stored configuration has no {name}, which this needs")


def read_run(path: Path) -> Run:
    """Read a record; what its configuration lacks is `BadInput` when it is asked for.

    Raises
    ------
    BadInput
        As `load_run`; or a setting, or a part of a provenance, is of another kind than fedmpi's are.
    """
    run = load_run(path)
    _refuse_other_kinds(run, "configuration", _Kinds, run.config)
    for attempt in run.attempts:
        _refuse_other_kinds(run, "provenance", _Origin, attempt.provenance)
        for name in ("parameters", "rank_of_client"):
            if len(attempt.provenance.get(name) or run.clients) != len(run.clients):
                raise BadInput(f"{run.folder}: its provenance has {name} of other clients than its own")
    return replace(run, config=_Stored(run.config, run.folder))


def hosts(provenance: Mapping[str, Any]) -> list[str]:
    """Return the names of the ranks' hosts, sorted."""
    return sorted({str(rank.get("host")) for rank in provenance.get("mpi", {}).get("ranks", [])})


def origin(run: Run) -> str:
    """Return a digest that a run shares with its copies only: where, when and what was measured.

    Empty where a record does not say where it was made.
    """
    mark = hashlib.sha256(run.config_digest.encode())
    for attempt in run.attempts:
        if "host" not in attempt.provenance:
            return ""
        mark.update(f"{attempt.provenance['host']} {attempt.started}".encode())
        mark.update(attempt.measurements["round_seconds"].tobytes())
    return mark.hexdigest() if run.attempts else ""


def system(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return on what an attempt ran: processor, hosts, MPI, device, threads, commit; "-" where unknown."""
    return {
        "processor": str(provenance.get("cpu_model", "-")),
        "hosts": ", ".join(hosts(provenance)) or str(provenance.get("host", "-")),
        "MPI": str(provenance.get("mpi", {}).get("library", "-")),
        "device": str(provenance.get("device", "-")),
        "threads": str(provenance.get("torch_threads", "-")),
        "commit": commit(provenance, "-", 12),
    }


def commit(provenance: Mapping[str, Any], without: str, letters: int | None = None) -> str:
    """Return the commit, or `without` where there was no checkout, and whether it had changes."""
    source = provenance.get("source", {})
    return str(source.get("commit", without))[:letters] + (" with changes" if source.get("dirty") else "")


def _refuse_other_kinds(run: Run, what: str, kinds: type[BaseModel], given: dict[str, Any]) -> None:
    try:
        kinds.model_validate(given)
    except ValidationError as error:
        detail = error.errors()[0]
        why = f"{'.'.join(map(str, detail['loc'])) or 'it'}: {detail['msg'].lower()}"
        raise BadInput(f"{run.folder}: its {what} is not one of fedmpi's ({why})") from error
