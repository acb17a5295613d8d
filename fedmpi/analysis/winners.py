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

CLUSTERS = "clustering accuracy"
"""Name of the score of unsupervised runs, which is one by labels."""


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
        Its scores in the round of best validation, means over seeds.
    test_maximum : float
        The best test score of any round and setting: what choosing on test data reports.
    draws : bool
        Whether the runs' seeds draw their partitions as well.
    """

    group: tuple[str, ...]
    config: dict[str, Any]
    options: str
    candidates: int
    score: str
    val: float
    test: float
    test_maximum: float
    draws: bool


def winners(runs: Iterable[Run], by: Sequence[str]) -> list[Winner]:
    """Return the winner of every group of complete runs.

    Every run counts at its round of best validation; the setting whose runs are best on average wins, the
    first of equals.

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
    """Return a run's scores by round: its headline, or the mean accuracy over clients.

    Clusters are scored by labels whatever the round, and no round is chosen: the last alone counts.
    """
    clusters = run.results.get("clustering_accuracy")
    if clusters is not None:
        last = np.flatnonzero(~np.isnan(clusters))[-1:]
        val = np.full(len(clusters), np.nan)
        val[last] = clusters[last]
        return Headline(CLUSTERS, True, val, clusters)
    accuracies = (mean_accuracy(run.results[f"{part}_accuracy"]) for part in ("val", "test"))
    return headline(run.results) or Headline("accuracy", True, *accuracies)


def as_suite(found: Sequence[Winner], name: str, seeds: Sequence[int]) -> str:
    """Return a suite, TOML, that runs the winners with these seeds.

    Where the sweep's seeds also drew its partitions, the new seeds do so too.
    """
    draws = all(winner.draws for winner in found)
    chosen_by = "labels" if all(winner.score == CLUSTERS for winner in found) else "validation"
    axis = [{"label": f"seed{seed}", "seed": seed, "partition": {"seed": seed}} for seed in seeds]
    lines = [
        f'name = "{name}"',
        f'description = "Winners of a sweep, chosen by {chosen_by}, with other seeds"',
        'priority = ["winner"]',
        "",
        "[case]",
        "",
        "[matrix]",
        f"seed = {_toml(axis) if draws else list(seeds)}",
        "winner = [",
    ]
    for winner in found:
        kept = {k: v for k, v in winner.config.items() if k not in ("suite", "name", "seed", "plugin")}
        if draws:
            kept["partition"] = {k: v for k, v in kept["partition"].items() if k != "seed"}
        label = re.sub(r"[^A-Za-z0-9._+=-]", "-", "-".join(winner.group))
        lines.append(f"    {_toml({'label': label, **kept})},")
    return "\n".join([*lines, "]", ""])


def _winner(group: tuple[str, ...], members: Sequence[tuple[Run, Headline]]) -> Winner:
    sign = 1 if members[0][1].higher else -1
    settings: dict[str, list[tuple[Run, Headline]]] = {}
    for run, found in members:
        settings.setdefault(option_text(run.config), []).append((run, found))
    scores = {text: float(np.mean([_best(found) for _, found in tried])) for text, tried in settings.items()}
    options = max(scores, key=lambda text: sign * scores[text])
    if np.isinf(scores[options]):
        raise BadInput(f"{', '.join(group)}: no run has a validation score to select by")
    chosen = settings[options]
    test = float(np.mean([found.best_by_validation for _, found in chosen]))
    maximum = max((each.as_published for _, each in members), key=lambda value: sign * value)
    run, found = chosen[0]
    seeds = {(run.config["seed"], run.config["partition"].get("seed")) for run, _ in members}
    draws = len(seeds) > 1 and all(seed == split for seed, split in seeds)
    val = scores[options]
    return Winner(group, run.config, options, len(settings), found.name, val, test, maximum, draws)


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
