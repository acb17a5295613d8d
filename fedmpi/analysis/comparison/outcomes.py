"""What a comparison needs of each run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedmpi.analysis.cells import grouped, names_itself, value_titles
from fedmpi.analysis.discovery import each_run, folder_of, without_copies
from fedmpi.analysis.names import algorithm_name, known_objective, reference_among, unsupervised_name
from fedmpi.analysis.stored import origin, system
from fedmpi.analysis.summary import setting, summarise
from fedmpi.config.tables import nested, value_at
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run
from fedmpi.store.schema import canonical_json


@dataclass(frozen=True, kw_only=True)
class Outcome(Run):
    """One run, without its results, partition and attempts.

    Attributes
    ----------
    name : str
        Its place below the side's folder, or its folder's name.
    config : dict
        With `numerics_version`.
    figures : dict
        Figures of merit by name (docs/metrics.md), and `rounds_to_target`, `seconds_to_target`.
    reached : bool
        Whether the target was reached; True without one.
    data, held : str
        Digests of the datasets' contents, and of who holds what.
    ranks : tuple of int
        Of each attempt.
    system : dict
        Processor, hosts, MPI, device, threads, commit.
    origin : str
        Shared by copies of a record only; empty where that is not known.
    """

    name: str
    figures: dict[str, float]
    reached: bool
    data: str
    held: str
    ranks: tuple[int, ...]
    system: dict[str, str]
    origin: str

    @property
    def algorithm(self) -> str:
        """The algorithm's name; of an unsupervised run the method's."""
        algorithm, objective = (str(setting(self.config, axis)) for axis in ("algorithm", "objective"))
        return unsupervised_name(objective, algorithm) if known_objective(objective) else algorithm

    @property
    def dataset(self) -> str:
        """The dataset's name."""
        return str(setting(self.config, "dataset"))


@dataclass(frozen=True)
class Side:
    """The runs that one argument stands for."""

    label: str
    runs: tuple[Outcome, ...]


def read_side(path: Path, target: float | None, complaints: list[str]) -> Side:
    """Read the runs of one side; what cannot be read is named in `complaints`."""
    try:
        root = folder_of(path)
    except BadInput as error:
        complaints.append(str(error))
        return Side(str(path), ())
    found = without_copies(each_run([path], complaints), complaints)
    return Side(str(path), tuple(_outcome(run, root, target) for run in found))


def split(sides: Sequence[Side], by: str, reference: str | None) -> list[Side]:
    """Return a side for each value of a setting, what the others are set against first.

    Parameters
    ----------
    sides : sequence of Side
        Whose runs are taken together.
    by : str
        The setting, dotted, such as ``algorithm`` or ``optimizer.lr``.
    reference : str or None
        The value of the first side; by default FedAvg, else "none", else the first that there is.

    Raises
    ------
    BadInput
        There are no two values, or none is the reference.
    """
    runs = [run for side in sides for run in side.runs]
    groups = list(grouped(runs, lambda run: canonical_json(nested(by, value_at(run.config, by)))).values())
    values = [value_at(members[0].config, by) for members in groups]
    shown = value_titles(values)
    names = [
        str(value["name"]) if names_itself(value) else title
        for value, title in zip(values, shown, strict=True)
    ]
    if len(groups) < 2:
        raise BadInput(f"--by {by}: not two values of it in these runs ({', '.join(shown) or 'none'})")
    if reference not in (None, *shown, *names, *map(algorithm_name, names)):
        raise BadInput(f"--reference {reference}: the runs have {'; '.join(shown)}")
    chosen = reference if reference in shown else None
    first = shown.index(chosen) if chosen else names.index(reference_among(names, reference))
    found = [Side(f"{by} {title}", tuple(members)) for title, members in zip(shown, groups, strict=True)]
    return [found.pop(first), *found]


def _outcome(run: Run, root: Path, target: float | None) -> Outcome:
    below = run.folder.is_relative_to(root) and run.folder != root
    summary = summarise(run, target)
    config = run.config | {"rounds": run.rounds, "numerics_version": run.numerics_version}
    return Outcome(
        **{**vars(run), "config": config, "results": {}, "partition": {}, "attempts": ()},
        name=run.folder.relative_to(root).as_posix() if below else run.folder.resolve().name,
        figures=_figures(summary),
        reached=target is None or summary["to_target"] is not None,
        data=" ".join(sorted(set(run.partition.get("dataset_digests", ())))),
        held=_held(run),
        ranks=tuple(attempt.ranks for attempt in run.attempts),
        system=system(run.attempts[-1].provenance) if run.attempts else {},
        origin=origin(run),
    )


def _figures(summary: Mapping[str, Any]) -> dict[str, float]:
    figures = {name: float(value) for name, value in summary.items() if isinstance(value, int | float)}
    reached = summary.get("to_target") or {}
    return figures | {f"{name}_to_target": float(value) for name, value in reached.items()}


def _held(run: Run) -> str:
    mark = hashlib.sha256()
    for name in sorted(run.partition):
        if name.endswith(("_index", "_ptr")) or name == "sizes":
            mark.update(name.encode() + run.partition[name].tobytes())
    return mark.hexdigest()


def described(side: Side) -> str:
    """Return a side's systems in a line: what all runs share, or how many values there are."""
    parts = [f"{len(side.runs)} run{'s' * (len(side.runs) != 1)}"]
    ranks = sorted({count for run in side.runs for count in run.ranks})
    parts.append(f"{', '.join(map(str, ranks)) or 'no'} rank{'s' * (ranks != [1])}")
    for name in ("processor", "hosts", "MPI", "device", "commit"):
        values = sorted({run.system.get(name, "-") for run in side.runs})
        parts += values if len(values) < 2 else [f"{len(values)} kinds of {name}"]
    return ", ".join(part for part in dict.fromkeys(parts) if part not in ("", "-"))
