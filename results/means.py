"""Prints means over seeds of a file of `fedmpi report --csv`, with 95 % intervals (Student's t), as Markdown.

With one figure a line per case and a column per dataset; with several a line per dataset and case. Cases are
named as their suite does, without seed and dataset. A figure is a column of the file: its mean over clients,
or their sum where it is traffic; scores are times 100. `front` names the costs for which no other case of the
dataset scores as well for less. `dataset=NAME` leaves out the others.

    python results/means.py results/reference/exchange-front.csv score
    python results/means.py results/reference/exchange-front.csv dataset=PROTEINS score client_megabytes front
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from fedmpi.analysis import rows
from fedmpi.judging.estimates import Estimate, estimate
from fedmpi.metrics.metric import METRICS

COSTS = {"client_megabytes": "traffic", "run_virtual_clock": "virtual time"}
Runs = dict[tuple[str, str], dict[str, list[dict[str, str]]]]
"""Rows by dataset and case, then by seed."""


def runs_of(path: Path) -> Runs:
    """Return the rows of a file."""
    found: Runs = defaultdict(lambda: defaultdict(list))
    for row in rows.read(path):
        case = row["case"].replace(f"seed{row['seed']}-", "").replace(f"{row['dataset']}-", "")
        found[row["dataset"], case][row["seed"]].append(row)
    return found


def mean(seeds: dict[str, list[dict[str, str]]], name: str) -> Estimate:
    """Return the mean over seeds of a column; NaN where a row lacks it."""
    combined = np.sum if name == "client_megabytes" else np.mean
    return estimate([combined([float(row[name] or "nan") for row in clients]) for clients in seeds.values()])


def fronts(found: Runs, dataset: str, case: str) -> str:
    """Return the costs for which no other case of the dataset scores as well for less."""
    alike = {key: seeds for key, seeds in found.items() if key[0] == dataset}
    metric = METRICS[next(iter(alike[dataset, case].values()))[0]["metric"]]
    scores = {key: metric.sign * mean(seeds, "score").mean for key, seeds in alike.items()}
    names = []
    for cost, title in COSTS.items():
        spent = {key: mean(seeds, cost).mean for key, seeds in alike.items()}
        own = -spent[dataset, case], scores[dataset, case]
        points = [(-spent[key], scores[key]) for key in alike]
        beaten = any(all(map(float.__ge__, point, own)) and point != own for point in points)
        names += [title] * (not beaten)
    return ", ".join(names)


def shown(found: Runs, dataset: str, case: str, name: str) -> str:
    """Return an entry of the table."""
    seeds = found.get((dataset, case))
    if seeds is None:
        return ""
    if name == "front":
        return fronts(found, dataset, case)
    value = mean(seeds, name)
    if np.isnan(value.mean):
        return ""
    scale = 100 if name.endswith(("score", "accuracy", "roc_auc", "f1")) else 1
    half = f"{scale * value.half:.1f}"
    half = "" if half in ("nan", "0.0") else f" ± {half}"
    return f"{scale * value.mean:.1f}{half}"


def table(path: Path, *figures: str) -> str:
    """Return the table of some figures."""
    only = [name.partition("=")[2] for name in figures if "=" in name]
    figures = tuple(name for name in figures if "=" not in name)
    found = {key: seeds for key, seeds in runs_of(path).items() if not only or key[0] in only}
    datasets, cases = (list(dict.fromkeys(key[place] for key in found)) for place in (0, 1))
    lines = [("case", *datasets) if len(figures) == 1 else ("dataset", "case", "seeds", *figures)]
    lines.append(("---",) * len(lines[0]))
    if len(figures) == 1:
        lines += [(case, *(shown(found, dataset, case, *figures) for dataset in datasets)) for case in cases]
    else:
        for key, seeds in found.items():
            lines.append((*key, str(len(seeds)), *(shown(found, *key, name) for name in figures)))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(table(Path(sys.argv[1]), *(sys.argv[2:] or ["score"])))
