"""Which settings of a sweep won, by validation data alone, and the suite that runs them again."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedmpi.analysis import scores
from fedmpi.analysis.cells import grouped, without
from fedmpi.analysis.options import option_text
from fedmpi.config.tables import toml_text
from fedmpi.errors import BadInput
from fedmpi.judging.estimates import Estimate, estimate
from fedmpi.metrics import selection
from fedmpi.metrics.metric import Metric
from fedmpi.registry.check import stated
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
        Its settings that are not the defaults and that not all runs of all groups share.
    candidates : int
        Settings that were tried.
    metric : Metric
        The headline of the runs.
    val, test : Estimate
        Its values in the round of best validation, means over seeds with their intervals.
    test_maximum : float
        The best test value of any round and setting: what choosing on test data reports.
    draws : bool
        Whether the runs' seeds draw their partitions as well.
    """

    group: tuple[str, ...]
    config: dict[str, Any]
    options: str
    candidates: int
    metric: Metric
    val: Estimate
    test: Estimate
    test_maximum: float
    draws: bool


Settings = Mapping[str, Any]
Labels = Mapping[str, Mapping[str, str]]
"""Of the cases of a suite by name: the label of each axis."""


def winners(runs: Iterable[Run], by: Sequence[str], labels: Labels | None = None) -> list[Winner]:
    """Return the winner of every group of complete runs.

    Every run counts at its round of best validation; the setting whose runs are best on average wins, the
    first of equals.

    Parameters
    ----------
    runs : iterable of Run
    by : sequence of str
        Settings, dotted, or axes of the runs' suite, by which runs are grouped. An axis comes before a
        setting of its name.
    labels : mapping, optional
        Labels of the suite's cases; without, there are no axes.

    Raises
    ------
    BadInput
        A run has no such setting, none is complete, or none of a group has a validation score.
    """
    complete = [run for run in runs if run.status == "complete"]
    of_case = labels or {}
    groups = grouped(complete, lambda run: tuple(_mark(run, key, of_case) for key in by))
    if not groups:
        raise BadInput("no complete runs to select from; run the suite first: fedmpi sweep SUITE")
    shared = set.intersection(*(set(option_text(run.config).split()) for run in complete))
    return [_winner(group, members, shared) for group, members in groups.items()]


def best_round(run: Run) -> int:
    """Return the round (0-based) of a run's best validation score, the earliest of equals; -1 without one.

    Where nothing is held out no round is chosen: the last alone counts.
    """
    val = scores.curve(run.results, run.headline, "val")[:, None]
    chosen = selection.best_rounds(run.headline.sign * val) if run.headline.held_out else None
    return int((selection.last_rounds(val) if chosen is None else chosen)[0])


def as_suite(found: Sequence[Winner], name: str, seeds: Sequence[int], *, draws: bool | None = None) -> str:
    """Return a suite, TOML, that runs the winners with these seeds.

    Where the sweep's seeds also drew its partitions, the new seeds do so too; `draws` says otherwise.
    """
    draws = all(winner.draws for winner in found) if draws is None else draws
    chosen_by = "labels" if not any(winner.metric.held_out for winner in found) else "validation"
    kept = []
    for winner in found:
        own = without(stated(winner.config), "seed", *["partition.seed"] * draws)
        kept.append((re.sub(r"[^A-Za-z0-9._+=-]", "-", "-".join(winner.group)), own))
    description = f"Winners of a sweep, chosen by {chosen_by}, with other seeds"
    return suite_text(name, description, {}, toml_text(seed_axis(seeds)) if draws else str(list(seeds)), kept)


def seed_axis(seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Return the values of an axis of seeds that draw the partition as well."""
    return [{"label": f"seed{seed}", "seed": seed, "partition": {"seed": seed}} for seed in seeds]


def suite_text(
    name: str, description: str, shared: Settings, seeds: str, winners: Iterable[tuple[str, Settings]]
) -> str:
    """Return a suite, TOML, of winners by label, with these values of the axis of seeds.

    Settings that all of them share stand in ``[case]``.
    """
    lines = [
        f'name = "{name}"',
        f'description = "{description}"',
        'priority = ["winner"]',
        "",
        "[case]",
        *(f"{key} = {toml_text(value)}" for key, value in shared.items()),
        "",
        "[matrix]",
        f"seed = {seeds}",
        "winner = [",
        *(f"    {toml_text({'label': label, **settings})}," for label, settings in winners),
    ]
    return "\n".join([*lines, "]", ""])


def _winner(group: tuple[str, ...], members: Sequence[Run], shared: Collection[str]) -> Winner:
    metric = members[0].headline
    settings = grouped(members, lambda run: option_text(run.config))
    found = {text: _mean(tried, "val") for text, tried in settings.items()}
    options = max(found, key=lambda text: _rank(metric, found[text].mean))
    if math.isnan(found[options].mean):
        raise BadInput(f"{', '.join(group)}: no run has a validation score to select by")
    tests = np.concatenate([scores.curve(run.results, metric) for run in members])
    chosen = settings[options]
    seeds = {(run.config["seed"], run.config["partition"].get("seed")) for run in members}
    return Winner(
        group,
        chosen[0].config,
        " ".join(part for part in options.split() if part not in shared),
        len(settings),
        metric,
        found[options],
        _mean(chosen, "test"),
        max(tests.tolist(), key=lambda value: _rank(metric, value)),
        draws=len(seeds) > 1 and all(seed == split for seed, split in seeds),
    )


def _mean(runs: Sequence[Run], part: str) -> Estimate:
    """Return the mean over runs of the headline at each one's best round; NaN where one has none."""
    curves = [scores.curve(run.results, run.headline, part) for run in runs]
    places = [best_round(run) for run in runs]
    values = [curve[at] if at >= 0 else math.nan for curve, at in zip(curves, places, strict=True)]
    return Estimate(math.nan, count=0) if np.isnan(values).any() else estimate(values)


def _rank(metric: Metric, value: float) -> float:
    return -math.inf if math.isnan(value) else metric.sign * value


def _mark(run: Run, key: str, labels: Labels) -> str:
    """Return a run's label on an axis, or its value of a setting."""
    label = labels.get(str(run.config["name"]), {}).get(key)
    if label is not None:
        return label
    value: Any = run.config
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise BadInput(f"--by {key}: {run.folder} has no such setting; try dataset.name,model.name")
        value = value[part]
    return str(value)
