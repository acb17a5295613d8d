"""A track: the suite of its tuning, and the suite of the winners that follows from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from fedmpi.analysis.cells import without
from fedmpi.analysis.options import flat
from fedmpi.analysis.winners import seed_axis, suite_text
from fedmpi.config import locations
from fedmpi.config.documents import load_toml
from fedmpi.config.names import case_name
from fedmpi.config.suite import CaseSettings, Suite, read
from fedmpi.config.tables import look_up, merge, toml_text
from fedmpi.errors import BadInput

SEEDS = tuple(range(1, 11))
"""Of the winners. A seed also draws the partition and the split; tuning has none of them."""

AXES = ("data", "algorithm")
"""Of a track's suite: the federation, and the method."""

HOW = "how"
"""A further axis that a track may have: the partition, a part of a federation's label."""

OF_SEEDS = ("seed", "partition.seed")
"""Settings in which runs of one candidate differ."""

BUNDLED = "leaderboard"
"""Folder of fedmpi's own tracks, and the first part of their names."""

TODAY = ("graph-classification", "node-classification", "molecules", "links")
EARLIER = ("graphs", "nodes")
"""Names of fedmpi's own tracks; the earlier ones, of four candidates each, have a page of their own."""

_UNTUNED = ("scaffold", "fednova", "q-fedavg")
"""Methods that had two rates of plain gradient descent in the earlier tracks."""

Settings = dict[str, Any]
Pair = tuple[str, str]
"""Labels of a federation and of a method."""


@dataclass(frozen=True)
class Track:
    """A track.

    Attributes
    ----------
    suite : Suite
        Its tuning: every candidate of every method on every federation.
    candidates : dict
        Those of each pair, in the suite's order.
    """

    suite: Suite
    candidates: dict[Pair, list[CaseSettings]]

    @property
    def name(self) -> str:
        """What rows and files call it: graphs, nodes, or the name of another suite with hyphens."""
        return self.suite.name.removeprefix(f"{BUNDLED}/").replace("/", "-")

    @property
    def bundled(self) -> bool:
        """Whether it is one of fedmpi's own tracks, or a copy that has kept the name."""
        return self.suite.name.startswith(f"{BUNDLED}/")

    @property
    def argument(self) -> str:
        """How commands name it: by its name, or by the file of its suite."""
        return self.name if self.bundled else str(self.suite.path)

    @property
    def earlier(self) -> bool:
        """Whether it is one of the earlier tracks."""
        return self.bundled and self.name in EARLIER

    @property
    def unranked(self) -> tuple[str, ...]:
        """Methods shown beside the others: what is not federated, and what an earlier track did not tune."""
        return ("centralised", *(_UNTUNED if self.earlier else ()))

    @property
    def partitions(self) -> dict[str, str]:
        """The name of each federation's partition; "" where the suite does not say it."""
        return {data: _partition(cases[0].settings) for (data, _), cases in self.candidates.items()}

    @property
    def tuned_file(self) -> Path:
        """Where the suite of the winners is, beside that of the tuning."""
        return self.suite.path.with_name(f"{self.suite.path.stem}-tuned.toml")

    @property
    def tuned_name(self) -> str:
        """Its name."""
        return f"{self.suite.name}-tuned"

    @property
    def pairs(self) -> dict[str, Pair]:
        """Each pair by its label in the suite of the winners."""
        return {f"{data}-{method}": (data, method) for data, method in self.candidates}

    @property
    def final_cases(self) -> dict[str, Pair]:
        """Each pair by the names of its cases in the suite of the winners."""
        pairs = product(self.pairs.items(), SEEDS)
        return {case_name([label, f"seed{seed}"]): pair for (label, pair), seed in pairs}

    @property
    def federations(self) -> list[str]:
        """Labels of the federations in the suite's order."""
        return list(dict.fromkeys(data for data, _ in self.candidates))

    @property
    def methods(self) -> list[str]:
        """Labels of the methods in the suite's order."""
        return list(dict.fromkeys(method for _, method in self.candidates))


def bundled() -> tuple[str, ...]:
    """Return the names of fedmpi's own tracks whose suites are there, today's first."""
    there = locations.bundled()
    return tuple(name for name in (*TODAY, *EARLIER) if f"{BUNDLED}/{name}" in there)


def _partition(settings: Settings) -> str:
    found = settings.get("partition", "")
    return str(found.get("name", "") if isinstance(found, Mapping) else found)


def track(path: Path, overrides: Sequence[str] = ()) -> Track:
    """Read a track's suite.

    Raises
    ------
    BadInput
        It has not the axes of a track, a case whose seed is one of the winners', methods with different
        numbers of candidates, or two pairs whose labels join to the same.
    """
    suite = read(path, overrides)
    candidates: dict[Pair, list[CaseSettings]] = {}
    for case in suite.cases:
        if any(axis not in case.labels for axis in AXES):
            raise BadInput(f"{path}: no track of a leaderboard: its suite needs the axes data and algorithm")
        seed = case.settings.get("seed", 0)
        if seed in SEEDS:
            raise BadInput(
                f"{path}: seed {seed} is one of the winners' ({SEEDS[0]} to {SEEDS[-1]}): tune on another"
            )
        data = "-".join(case.labels[axis] for axis in (AXES[0], HOW) if axis in case.labels)
        candidates.setdefault((data, case.labels[AXES[1]]), []).append(case)
    counts = {len(cases) for cases in candidates.values()}
    if len(counts) > 1:
        listed = ", ".join(map(str, sorted(counts)))
        raise BadInput(
            f"{path}: methods have {listed} candidates; a leaderboard gives all of them the same number"
        )
    found = Track(suite, candidates)
    if len(found.pairs) < len(candidates):
        label, count = Counter("-".join(pair) for pair in candidates).most_common(1)[0]
        raise BadInput(
            f"{path}: {label} is the label of {count} pairs of data and algorithm; change one name"
        )
    return found


def stored(found: Track) -> dict[str, Settings]:
    """Return the settings of a track's winners by their labels; nothing where none are stored.

    Raises
    ------
    BadInput
        In the place of the suite of the winners is something else.
    """
    path = found.tuned_file
    if not path.exists():
        return {}
    text = load_toml(path, "suite")
    case, matrix = text.get("case"), text.get("matrix")
    listed = matrix.get("winner") if isinstance(matrix, dict) else None
    whole = isinstance(listed, list) and all(isinstance(each, dict) and "label" in each for each in listed)
    if text.get("name") != found.tuned_name or not isinstance(case, dict) or not whole:
        raise BadInput(f"{path}: not the winners of {found.suite.name}, which belong there; move it")
    own = {str(each["label"]): without(each, "label") for each in listed or []}
    return {label: merge(case, settings) for label, settings in own.items()}


def tuned_suite(found: Track, settings: Mapping[str, Settings]) -> str:
    """Return the suite of the winners, TOML: what all share stands in ``[case]``.

    Parameters
    ----------
    found : Track
    settings : mapping
        Of the winners, by label.
    """
    kept = {label: without(each, "seed") for label, each in settings.items()}
    first, *others = kept.values()
    shared = {key: value for key, value in first.items() if all(each.get(key) == value for each in others)}
    shared.pop("algorithm", None)  # of a single winner: a value of an axis has some setting of its own
    own = [(label, without(each, *shared)) for label, each in kept.items()]
    description = f"Leaderboard, {found.name}: the winners of the tuning, ten seeds"
    begin = "# Written by `fedmpi leaderboard run`; do not edit. Each method's best candidate by validation."
    text = suite_text(found.tuned_name, description, shared, toml_text(seed_axis(SEEDS)), own)
    return f"{begin}\n{text}"


def merged(
    found: Track, earlier: Mapping[str, Settings], new: Mapping[Pair, Settings]
) -> dict[str, Settings]:
    """Return the winners by label: new ones in the place of earlier ones, in the order of the suite."""
    fresh = {f"{data}-{method}": settings for (data, method), settings in new.items()}
    order = [label for label in (*found.pairs, *earlier) if label in fresh or label in earlier]
    return {label: fresh.get(label, earlier.get(label, {})) for label in dict.fromkeys(order)}


def tuned_text(settings: Mapping[str, Any], candidates: Sequence[CaseSettings]) -> str:
    """Return what sets a candidate apart from the others of its method: ``key=value``, sorted by key."""
    keys = sorted(
        {key.removesuffix(".name") for each in candidates for key in flat(each.settings)} - {*OF_SEEDS}
    )
    varied = [key for key in keys if len({str(look_up(each.settings, key)) for each in candidates}) > 1]
    values = {key: look_up(settings, key) for key in varied}
    return " ".join(f"{key}={_plain(value)}" for key, value in values.items() if value is not None)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else toml_text(value)
