"""Methods against baselines, seed by seed, under each selection rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedmpi.analysis.published import Interval, Key, interval

RULES = {
    "last round": "test_accuracy",
    "best by validation": "test_accuracy_best_by_validation",
    "as published": "test_accuracy_as_published",
}
"""Selection rules and the columns of `fedmpi report --csv` that hold them."""

_BASELINES = ("fedavg", "self-train")


def averages(rows: Sequence[Mapping[str, str]], column: str) -> dict[Key, dict[str, float]]:
    """Return the mean over clients of each dataset, algorithm and number of rounds, by seed."""
    values: dict[Key, dict[str, list[float]]] = {}
    for row in rows:
        key = (row["dataset"], row["algorithm"], int(row["rounds"]))
        values.setdefault(key, {}).setdefault(row["seed"], []).append(float(row[column]))
    return {key: {seed: float(np.mean(v)) for seed, v in seeds.items()} for key, seeds in values.items()}


def difference(ours: Mapping[str, float], baseline: Mapping[str, float]) -> tuple[Interval, int]:
    """Return the mean difference over the seeds that both have, with its interval, and their number."""
    seeds = sorted(ours.keys() & baseline.keys())
    gaps = np.array([ours[seed] - baseline[seed] for seed in seeds])
    if not len(gaps):
        return Interval(float("nan"), float("nan")), 0
    spread = float(np.std(gaps, ddof=1)) if len(gaps) > 1 else 0.0
    return interval(float(gaps.mean()), spread, len(gaps)), len(gaps)


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a Markdown table of every method against FedAvg and self-train, both under the same rule.

    A baseline has one model in all rounds, so "as published" is its last round.
    """
    cells = {rule: averages(rows, column) for rule, column in RULES.items()}
    first = cells["last round"]
    lines = [
        f"| dataset | method | against | seeds | {' | '.join(RULES)} |",
        "|---|---|---|---|" + "---|" * len(RULES),
    ]
    for key in first:
        for other in first:
            if (
                key[0] != other[0]
                or key[1] == other[1]
                or other[1] not in _BASELINES
                or key[1] == "self-train"
            ):
                continue
            found = [difference(cells[rule][key], cells[rule][other]) for rule in RULES]
            if found[0][1]:
                shown = " | ".join(_signed(gap) for gap, _ in found)
                against = f"{other[1]}, {other[2]} rounds"
                lines.append(f"| {key[0]} | {key[1]} | {against} | {found[0][1]} | {shown} |")
    return "\n".join(lines) + "\n"


def _signed(gap: Interval) -> str:
    return f"+{gap}" if gap.mean >= 0 else str(gap)
