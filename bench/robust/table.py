"""Print the tables of README.md from rows: accuracy of benign clients, and where groups leave attackers.

python bench/robust/table.py results/reference/robust-attacks.csv
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from fedmpi.analysis.options import split_options
from fedmpi.analysis.rows import read

Row = dict[str, str]
Key = tuple[str, str, tuple[str, float], str]
Figure = Callable[[list[Row]], float | None]

ORDER = ("fedavg", "clipping", "median", "trimmed-mean", "krum", "gcfl", "gcfl-plus", "fedcch")
ATTACKS = ("none", "label-flip", "sign-flip", "noise", "colluding")


def runs(path: str) -> dict[Key, list[Row]]:
    """Return the figures of each run by dataset, method, attack with its share, and seed."""
    found: dict[Key, list[Row]] = {}
    for row in read(Path(path)):
        options = split_options(row["options"])
        attack = options.get("attack", "none")
        share = float(options.get("attack.fraction", 0.2)) if attack != "none" else 0.0
        method = options.get("privacy", row["algorithm"])
        found.setdefault((row["dataset"], method, (attack, share), row["seed"]), []).append(row)
    return found


def cell(figures: list[float], digits: int) -> str:
    """Return the mean over seeds in percent, with the plain standard deviation where there are several."""
    if not figures:
        return ""
    spread = f" ± {100 * np.std(figures, ddof=1):.{digits}f}" if len(figures) > 1 else ""
    return f"{100 * np.mean(figures):.{digits}f}{spread}"


def table(
    found: dict[Key, list[Row]], dataset: str, figure: Figure, methods: Sequence[str], digits: int = 1
) -> None:
    """Print one table: a row per method, a column per attack.

    Parameters
    ----------
    found : dict
        Of `runs`.
    dataset : str
    figure : callable
        What a cell is the mean over seeds of.
    methods : sequence of str
    digits : int
        After the point.
    """
    columns = sorted(
        {key[2] for key in found if key[0] == dataset}, key=lambda each: (ATTACKS.index(each[0]), each[1])
    )
    cells = defaultdict(list)
    for (data, method, attack, _), rows in found.items():
        if data == dataset and (value := figure(rows)) is not None:
            cells[method, attack].append(value)
    names = [f"{name} {share:.0%}" if share else name for name, share in columns]
    print(f"| {dataset} | {' | '.join(names)} |")
    print(f"|---|{'---:|' * len(columns)}")
    for method in methods:
        print(f"| {method} | {' | '.join(cell(cells[method, each], digits) for each in columns)} |")
    print()


def benign(rows: list[Row]) -> float:
    """Return the mean accuracy of the clients that do not attack: of all, where nobody does."""
    own = rows[0].get("benign_test_accuracy")
    return float(own) if own else float(np.mean([float(row["score"]) for row in rows]))


def together(rows: list[Row]) -> float | None:
    """Return the share of attackers in an attacker's group; nothing where nobody attacks."""
    own = rows[0].get("attackers_together")
    return float(own) if own else None


def exposed(rows: list[Row]) -> float | None:
    """Return the share of benign clients in a group with an attacker."""
    own = rows[0].get("benign_with_attackers")
    return float(own) if own else None


if __name__ == "__main__":
    ran = runs(sys.argv[1])
    for name in dict.fromkeys(key[0] for key in ran):
        print("Accuracy of benign clients, %\n")
        table(ran, name, benign, ORDER)
        for title, figure in (
            ("Attackers in an attacker's group, %", together),
            ("Benign clients in a group with an attacker, %", exposed),
        ):
            print(f"{title}\n")
            table(ran, name, figure, ("gcfl", "gcfl-plus", "fedcch"), 0)
