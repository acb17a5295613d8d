"""Which settings of a sweep won, by validation data alone, and the suite that runs them again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedmpi.analysis.options import option_text
from fedmpi.errors import BadInput
from fedmpi.metrics.headline import Headline, headline
from fedmpi.metrics.targets import mean_accuracy
from fedmpi.store.reader import Run


@dataclass(frozen=True)
class Winner:
    """The best settings of a group of runs.

    Attributes
    ----------
    group : tuple of str
        What the runs of the group have in common.
    config : dict
        Configuration of the winner.
    options : str
        Its settings that are not the defaults.
    candidates : int
        Settings that were tried.
    score : str
        Name of the score.
    val, test : float
        Its scores in the round of best validation.
    test_maximum : float
        The best test score of any round and setting: what choosing on test data reports.
    """

    group: tuple[str, ...]
    config: dict[str, Any]
    options: str
    candidates: int
    score: str
    val: float
    test: float
    test_maximum: float


def winners(runs: Iterable[Run], by: Sequence[str]) -> list[Winner]:
    """Return the winner of every group of complete runs.

    Every run counts at its round of best validation; the best of these wins, the first of equals.

    Parameters
    ----------
    runs : iterable of Run
    by : sequence of str
        Settings, dotted, by which runs are grouped.

    Raises
    ------
    BadInput
        A run has no such setting, none is complete, or none of a group has a validation score.
    """
    groups: dict[tuple[str, ...], list[tuple[Run, Headline]]] = {}
    for run in runs:
        if run.status == "complete":
            groups.setdefault(tuple(_setting(run, key) for key in by), []).append((run, curve(run)))
    if not groups:
        raise BadInput("no complete runs to select from; run the suite first: fedmpi sweep SUITE")
    return [_winner(group, members) for group, members in groups.items()]


def curve(run: Run) -> Headline:
    """Return a run's scores by round: its headline, or the mean accuracy over clients."""
    accuracies = (mean_accuracy(run.results[f"{part}_accuracy"]) for part in ("val", "test"))
    return headline(run.results) or Headline("accuracy", True, *accuracies)


def as_suite(found: Sequence[Winner], name: str, seeds: Sequence[int]) -> str:
    """Return a suite, TOML, that runs the winners with these seeds."""
    lines = [
        f'name = "{name}"',
        'description = "Winners of a sweep, chosen by validation, with other seeds"',
        'priority = ["winner"]',
        "",
        "[case]",
        "",
        "[matrix]",
        f"seed = {list(seeds)}",
        "winner = [",
    ]
    for winner in found:
        kept = {k: v for k, v in winner.config.items() if k not in ("suite", "name", "seed")}
        label = re.sub(r"[^A-Za-z0-9._+=-]", "-", "-".join(winner.group))
        lines.append(f"    {_toml({'label': label, **kept})},")
    return "\n".join([*lines, "]", ""])


def _winner(group: tuple[str, ...], members: Sequence[tuple[Run, Headline]]) -> Winner:
    sign = 1 if members[0][1].higher else -1
    scored = [(run, found, _best(found)) for run, found in members]
    run, found, val = max(scored, key=lambda each: sign * each[2])
    if np.isinf(val):
        raise BadInput(f"{', '.join(group)}: no run has a validation score to select by")
    maximum = max((each.as_published for _, each, _ in scored), key=lambda value: sign * value)
    tried = len({option_text(run.config) for run, _ in members})
    options, test = option_text(run.config), found.best_by_validation
    return Winner(group, run.config, options, tried, found.name, val, test, maximum)


def _best(found: Headline) -> float:
    place = found.best_round
    if not len(place):
        return -np.inf if found.higher else np.inf
    return float(found.val[place[0]])


def _setting(run: Run, key: str) -> str:
    value: Any = run.config
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise BadInput(f"--by {key}: {run.folder} has no such setting; try dataset.name,model.name")
        value = value[part]
    return str(value)


def _toml(value: Any) -> str:
    """Return a configuration's value as TOML; JSON's text is the same but for tables."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value)
