"""Reads the record of a run, whatever state its writer left it in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from pydantic import ValidationError

from fedmpi.errors import BadInput
from fedmpi.metrics.metric import ACCURACY, Metric
from fedmpi.store import events, lock, old_schema, runfile
from fedmpi.store.checks import SEALED, AttemptHeader, Header, Seals
from fedmpi.store.hdf5 import open_file
from fedmpi.store.layout import in_attempt, in_file, rest_of_attempt, rest_of_file
from fedmpi.store.plain import Damaged, Dataset, Tree, look_over
from fedmpi.store.schema import (
    SCHEMA_VERSION,
    STATUSES,
    Array,
    Field,
    axis_sizes,
    is_whole,
    measurement_fields,
)
from fedmpi.store.stored import in_words, parse_object
from fedmpi.visible import visible


@dataclass(frozen=True)
class AttemptRecord:
    """What one attempt of the run measured.

    Attributes
    ----------
    first_round : int
        Its first round, 0-based.
    rounds_written : int
        Rounds it finished; the first axis of every measurement.
    ranks : int
    phases, collectives : tuple of str
        Names along those axes.
    started, ended : str
        UTC; `ended` is empty if it was killed or still runs.
    provenance : dict
    measurements : dict of arrays
        Row 0 is round `first_round`.
    """

    first_round: int
    rounds_written: int
    ranks: int
    phases: tuple[str, ...]
    collectives: tuple[str, ...]
    started: str
    ended: str
    provenance: dict[str, Any]
    measurements: dict[str, Array]


@dataclass(frozen=True)
class Run:
    """The record of one run, in memory.

    Attributes
    ----------
    folder : Path
    config, config_digest : dict, str
    fedmpi_version, numerics_version : str, int
    status : str
        running, complete, interrupted, diverged, failed; or "stale": says running, but no live
        process holds the folder.
    reason : str
        Why, for people; empty where nothing went wrong.
    rounds, rounds_completed : int
        Planned and recorded.
    clients : tuple of str
    results : dict of arrays [rounds_completed, ...]
    partition : dict of arrays
    attempts : tuple of AttemptRecord
        In the order they ran.
    metrics : tuple of Metric
        By which the run is judged; the first is its headline.
    schema_version : int
        Before 3 a record has no digests, so damage of its numbers is not detected.
    """

    folder: Path
    config: dict[str, Any]
    config_digest: str
    fedmpi_version: str
    numerics_version: int
    status: str
    reason: str
    rounds: int
    rounds_completed: int
    clients: tuple[str, ...]
    results: dict[str, Array]
    partition: dict[str, Array]
    attempts: tuple[AttemptRecord, ...]
    metrics: tuple[Metric, ...] = (ACCURACY,)
    schema_version: int = SCHEMA_VERSION

    def __repr__(self) -> str:
        """Return one line: where the record lies, and how far its run came."""
        return visible(f"<Run {self.folder}: {self.status}, {self.rounds_completed} of {self.rounds} rounds>")

    @property
    def headline(self) -> Metric:
        """The metric by which the run is judged first."""
        return self.metrics[0]

    def kept_rounds(self) -> Iterator[tuple[AttemptRecord, Array]]:
        """Yield each attempt with the rows (int64) of the rounds that no later attempt computed again."""
        owner = np.full(self.rounds_completed, -1)
        for number, attempt in enumerate(self.attempts):
            owner[attempt.first_round : attempt.first_round + attempt.rounds_written] = number
        for number, attempt in enumerate(self.attempts):
            yield attempt, np.flatnonzero(owner == number) - attempt.first_round

    def measured(self, name: str) -> Array:
        """Return a measurement over all rounds, each from the last attempt to compute it.

        Shape [rounds_completed, ...]; only for measurements without a rank axis,
        whose length may change from attempt to attempt. Needs at least one attempt.
        """
        like = self.attempts[0].measurements[name]
        rows = np.zeros((self.rounds_completed, *like.shape[1:]), like.dtype)
        for attempt, kept in self.kept_rounds():
            rows[kept + attempt.first_round] = attempt.measurements[name][kept]
        return rows


def load_run(path: Path) -> Run:
    """Read a record.

    Nothing but the file itself is read: whatever in it leads elsewhere is refused, and so is a number that
    is not the one that was written.

    Parameters
    ----------
    path : Path
        `run.h5` or the folder it lies in; in a folder it must be no link.

    Raises
    ------
    BadInput
        Missing, damaged, foreign, or of a newer schema; one line with what to do.
    """
    file = path / runfile.NAME if path.is_dir() else path
    if path.is_dir() and file.is_symlink():
        raise BadInput(f"{file}: it is a link, and links are not followed; put the record itself there")
    if not file.is_file():
        raise BadInput(f"{file}: no such record{repair_hint(file)}")
    try:
        with open_file(file, "r") as handle:
            tree = look_over(handle)
            _check_schema(file, tree)
            return _read(file.parent, tree)
    except BadInput:
        raise
    except Exception as error:  # HDF5 and h5py raise nearly anything on bytes that are not theirs
        if lock.state(file.parent) == "live":
            raise BadInput(f"{file}: is being written just now; try again") from error
        raise BadInput(f"{file}: {_in_words(error)}{repair_hint(file)}") from error


def _in_words(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return in_words(error)
    return str(error) if isinstance(error, Damaged) else "damaged or no HDF5 file"


def repair_hint(file: Path) -> str:
    """Return what to do about a damaged record whose log is there; "" where it is not."""
    if file.name == runfile.NAME and (file.parent / events.NAME).is_file():
        return f"; its rounds are in {events.NAME}: fedmpi records repair {quote(str(file.parent))}"
    return ""


def _check_schema(file: Path, tree: Tree) -> None:
    attributes = tree.groups[""]
    if "schema_version" not in attributes:
        raise BadInput(f"{file}: an HDF5 file, but not the record of a fedmpi run (no schema_version)")
    version = int(attributes["schema_version"])
    if version > SCHEMA_VERSION:
        raise BadInput(
            f"{file}: written in schema {version}, this fedmpi reads up to {SCHEMA_VERSION}; update fedmpi"
        )


def _read(folder: Path, tree: Tree) -> Run:
    header, data = Header.model_validate(tree.groups[""]), tree.datasets
    extra, rounds = header.extra(), header.rounds
    seals = Seals(tree, rounds, sealed=header.schema_version >= SEALED)
    config, clients = data["config"].text(), data["clients"].texts().tolist()
    partition = {name: _array(each) for name, each in tree.below("partition").items()}
    seals.check_rest("", rest_of_file(tree.groups[""], config, clients, partition))
    sizes = axis_sizes(len(clients), partition=partition)
    seals.check_names("", in_file(rounds, extra, sizes))
    completed = seals.whole_rounds("", "digests/results", data["rounds_completed"].integer())
    results = {name: each.read(completed) for name, each in tree.below("rounds").items()}
    seals.check_rounds("", "digests/results", 0, results)
    metrics = header.judged_by()
    if header.schema_version < old_schema.SAYS_METRICS:
        blank = old_schema.blank_fields(metrics)
        results = {name: values for name, values in results.items() if name not in blank}
    attempts = tuple(
        _attempt(tree, f"lives/{number}", seals, header, extra, sizes) for number in range(_attempts(tree))
    )
    _check_measured_by_all(attempts, completed)
    settings = parse_object(config)
    whole = is_whole(settings, completed, rounds)
    return Run(
        folder=folder,
        config=settings,
        config_digest=header.config_digest,
        fedmpi_version=header.fedmpi_version,
        numerics_version=header.numerics_version,
        status=_status(folder, seals.text("", "status"), whole=whole, count=f"{completed} of {rounds}"),
        reason=seals.text("", "reason"),
        rounds=rounds,
        rounds_completed=completed,
        clients=tuple(clients),
        results=results,
        partition={name: array if array.shape else array[()] for name, array in partition.items()},
        attempts=attempts,
        metrics=metrics,
        schema_version=header.schema_version,
    )


def _status(folder: Path, text: str, *, whole: bool, count: str) -> str:
    if text not in STATUSES:
        raise Damaged(f"/status: {text[:40]!r} is no status of a run")
    if text == "complete" and not whole:
        raise Damaged(f"/status: complete after {count} rounds")
    return "stale" if text == "running" and lock.state(folder) != "live" else text


def _attempts(tree: Tree) -> int:
    """Return how many attempts there are; their groups are numbered from 0."""
    numbers = [path.removeprefix("lives/") for path in tree.groups if path.startswith("lives/")]
    attempts = [number for number in numbers if "/" not in number]
    if sorted(attempts) != sorted(map(str, range(len(attempts)))):
        raise Damaged("/lives: not numbered from 0")
    return len(attempts)


def _attempt(
    tree: Tree, group: str, seals: Seals, file: Header, extra: tuple[Field, ...], sizes: Mapping[str, int]
) -> AttemptRecord:
    attributes = tree.groups[group]
    if "collectives" in attributes:
        attributes = {**attributes, "collectives": attributes["collectives"].tolist()}
    header, data = AttemptHeader.model_validate(attributes), tree.below(group)
    provenance = data["provenance"].text()
    seals.check_rest(group, rest_of_attempt(attributes, provenance))
    own = {**sizes, "rank": header.ranks, "collective": len(header.collectives)}
    seals.check_names(group, in_attempt(file.rounds - header.first_round, extra, own))
    written = seals.whole_rounds(group, "digests/measurements", data["rounds_written"].integer())
    fields = measurement_fields(extra)
    measured = {name: data[name].read(written) for name in fields if name in data}
    seals.check_rounds(group, "digests/measurements", header.first_round, measured)
    _check_measured(group, fields, measured)
    return AttemptRecord(
        first_round=header.first_round,
        rounds_written=written,
        ranks=header.ranks,
        phases=tuple(data["phase_seconds"].attributes()["phases"].tolist()),
        collectives=tuple(header.collectives),
        started=header.started,
        ended=seals.text(group, "ended"),
        provenance=parse_object(provenance),
        measurements=measured,
    )


def _check_measured_by_all(attempts: Iterable[AttemptRecord], completed: int) -> None:
    """Refuse a record with rounds that no attempt computed."""
    computed = np.zeros(completed, bool)
    for attempt in attempts:
        computed[attempt.first_round : attempt.first_round + attempt.rounds_written] = True
    if not computed.all():
        raise Damaged(f"/lives: none computed round {int(np.argmin(computed)) + 1}")


def _check_measured(group: str, fields: Mapping[str, Field], measured: Mapping[str, Array]) -> None:
    for name, values in measured.items():
        try:
            fields[name].check(values)
        except ValueError as error:
            raise Damaged(f"/{group}: {error}") from error


def _array(dataset: Dataset) -> Array:
    return dataset.texts() if dataset.dtype.kind in "SO" else dataset.read()
