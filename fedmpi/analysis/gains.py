"""Gains of methods over self-train, client by client, and how far results move between seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.analysis.paired import RULES, difference
from fedmpi.analysis.published import Interval, Key, Published
from fedmpi.errors import BadInput
from fedmpi.metrics import clients

Float = npt.NDArray[np.float64]
Accuracies = Mapping[str, Mapping[str, float]]
"""By seed and client."""

_ALONE = "self-train"
_DIGITS = 12
"""Gains are rounded to these: ties and clients without gain shall not hang on the last bit of a mean."""


@dataclass(frozen=True)
class Gain:
    """Gains over self-train: differences of each client's means over the seeds that both have.

    Attributes
    ----------
    seeds : int
        Number of these seeds.
    mean : Interval
        Mean over clients, with the 95 % interval over seeds, paired.
    least : float
        Smallest gain of a client.
    client : str
        The first client that has it.
    improved, clients : int
        How many clients gain at least 0, and how many there are.
    """

    seeds: int
    mean: Interval
    least: float
    client: str
    improved: int
    clients: int

    def __str__(self) -> str:
        sign = "+" if self.mean.mean >= 0 else ""
        return f"{sign}{self.mean}; {self.least:+.4f} ({self.client}); {self.improved}/{self.clients}"


def accuracies(rows: Sequence[Mapping[str, str]], column: str) -> dict[Key, dict[str, dict[str, float]]]:
    """Return the accuracies of each dataset, algorithm and number of rounds, by seed and client.

    Raises
    ------
    BadInput
        A client is there twice for one seed, or seeds have different clients.
    """
    cells: dict[Key, dict[str, dict[str, float]]] = {}
    for row in rows:
        key = (row["dataset"], row["algorithm"], int(row["rounds"]))
        found = cells.setdefault(key, {}).setdefault(row["seed"], {})
        if row["client"] in found:
            raise BadInput(f"rows of {key[1]} on {key[0]}: {row['client']} twice for seed {row['seed']}")
        found[row["client"]] = float(row[column])
    for (dataset, algorithm, _), seeds in cells.items():
        if len({frozenset(found) for found in seeds.values()}) > 1:
            raise BadInput(f"rows of {algorithm} on {dataset}: not the same clients for each seed")
    return cells


def gain(ours: Accuracies, alone: Accuracies) -> Gain | None:
    """Return the gains over self-train; None where no seed has both.

    Raises
    ------
    BadInput
        The two have different clients.
    """
    seeds = sorted(ours.keys() & alone.keys())
    if not seeds:
        return None
    names = list(ours[seeds[0]])
    if set(names) != set(alone[seeds[0]]):
        raise BadInput("rows of self-train have other clients than those of a method on the same dataset")
    gaps = np.array([[ours[seed][name] - alone[seed][name] for name in names] for seed in seeds])
    each = gaps.mean(axis=0).round(_DIGITS) + 0.0  # no -0.0
    mean, count = difference(_averages(ours), _averages(alone))
    improved = int((each >= 0).sum())
    return Gain(count, mean, float(each.min()), names[int(each.argmin())], improved, len(names))


def _averages(found: Accuracies) -> dict[str, float]:
    return {seed: float(np.mean(list(values.values()))) for seed, values in found.items()}


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a Markdown table of every method's gains over each self-train, both under the same rule.

    A longer self-train is a method over a shorter one. Self-train has no splits, so that its figure
    "as published" is its last round's.
    """
    cells = {rule: accuracies(rows, column) for rule, column in RULES.items()}
    headings = " | ".join(f"{rule}: mean; min (client); ratio" for rule in RULES)
    lines = [f"| dataset | method | over | seeds | {headings} |", "|---|---|---|---|" + "---|" * len(RULES)]
    first = cells["last round"]
    for key in sorted(first):
        for other in sorted(first):
            if other[:2] != (key[0], _ALONE) or (key[1] == _ALONE and key[2] <= other[2]):
                continue
            found = [gain(cells[rule][key], cells[rule][other]) for rule in RULES]
            if found[0] is not None:
                shown = " | ".join(map(str, found))
                lines.append(f"| {key[0]} | {_method(key)} | {_method(other)} | {found[0].seeds} | {shown} |")
    return "\n".join(lines) + "\n"


def spread_table(rows: Sequence[Mapping[str, str]], published: Mapping[Key, Sequence[Published]]) -> str:
    """Return a Markdown table of both kinds of standard deviation over seeds, beside the published one.

    The first is the mean over clients of each client's, which GCFL prints behind +-; the second that of
    the average over clients, which the intervals of the other tables are made from.
    """
    cells = {rule: accuracies(rows, column) for rule, column in RULES.items()}
    headings = " | ".join(f"{rule}: of a client, of the average" for rule in RULES)
    lines = [f"| dataset | method | seeds | {headings} | published, of a client |"]
    lines.append("|---|---|---|" + "---|" * (len(RULES) + 1))
    for key in sorted(cells["last round"]):
        seeds = len(cells["last round"][key])
        shown = " | ".join(_spreads(cells[rule][key]) for rule in RULES)
        theirs = [f"{cell.spread:.3f}" for cell in published.get(key, ()) if cell.spread is not None]
        lines.append(f"| {key[0]} | {_method(key)} | {seeds} | {shown} | {', '.join(theirs) or '-'} |")
    return "\n".join(lines) + "\n"


def _spreads(found: Accuracies) -> str:
    if len(found) < 2:
        return "-"
    names = list(next(iter(found.values())))
    values: Float = np.array([[seed[name] for name in names] for seed in found.values()])
    return f"{clients.std_over_seeds(values):.4f}, {clients.std_of_average(values):.4f}"


def _method(key: Key) -> str:
    return f"{key[1]}, {key[2]} rounds"
