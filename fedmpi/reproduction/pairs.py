"""Every method of a suite against baselines, its gains, and how far it moves between seeds, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedmpi.analysis.names import algorithm_place, dataset_name
from fedmpi.analysis.rows import RULES
from fedmpi.metrics import clients
from fedmpi.reproduction import measures
from fedmpi.reproduction.published import Published
from fedmpi.reproduction.results import Cell, Results
from fedmpi.reproduction.tables import markdown, method, signed

_BASELINES = ("fedavg", "self-train")
_ALONE = "self-train"


def cells_of(results: Results, suite: str) -> list[Cell]:
    """Return the cells of a suite that have runs, by dataset, those of a dataset in the usual order."""
    cells = [cell for cell, _ in results.planned(suite) if cell.runs]
    datasets = list(dict.fromkeys(cell.key.dataset for cell in cells))
    return sorted(
        cells,
        key=lambda cell: (
            datasets.index(cell.key.dataset),
            algorithm_place(cell.key.algorithm),
            cell.key.rounds,
            cell.key.options,
        ),
    )


def lead_table(cells: Sequence[Cell]) -> str:
    """Return every method's lead over FedAvg and self-train, paired by seed."""
    rows = []
    for ours, other in _pairs(cells):
        leads = [measures.lead(ours, other, column) for column in RULES.values()]
        if leads[0] is not None:
            names = [dataset_name(ours.key.dataset), method(ours.key), method(other.key)]
            rows.append([*names, str(leads[0].count), *map(signed, leads)])
    return markdown(["dataset", "method", "against", "seeds", *RULES], rows)


def gain_table(cells: Sequence[Cell]) -> str:
    """Return every method's gains over each self-train: the smallest and whose, clients that gain >= 0."""
    rows = []
    for ours, other in _pairs(cells):
        found = [measures.gains(ours, other, column) for column in RULES.values()]
        if other.key.algorithm != _ALONE or found[0] is None:
            continue
        shown = [f"{one.least.signed} ({one.client}); {one.ratio}" for one in found if one is not None]
        names = [dataset_name(ours.key.dataset), method(ours.key), method(other.key)]
        rows.append([*names, str(found[0].mean.count), *shown])
    return markdown(["dataset", "method", "over", "seeds", *RULES], rows)


def spread_table(cells: Sequence[Cell], figures: Sequence[Published], results: Results) -> str:
    """Return both standard deviations over seeds, of a client (as papers print it) and of the average."""
    printed = {
        results.one(figure.suite, figure.cases)[0].key: figure.spread
        for figure in figures
        if figure.spread is not None
    }
    rows = []
    for cell in cells:
        spread = printed.get(cell.key)
        shown = [_spreads(cell, column) for column in RULES.values()]
        names = [dataset_name(cell.key.dataset), method(cell.key), str(len(cell.runs))]
        rows.append([*names, *shown, "-" if spread is None else f"{spread:.3f}"])
    return markdown(["dataset", "method", "seeds", *RULES, "published, of a client"], rows)


def _pairs(cells: Sequence[Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Yield each method with each baseline; of two self-trains the longer is the method."""
    for ours in cells:
        for other in cells:
            alone = ours.key.algorithm == _ALONE
            baseline = other.key.algorithm in _BASELINES and ours.key.dataset == other.key.dataset
            longer = ours.key.rounds > other.key.rounds
            same = ours.key.algorithm == other.key.algorithm
            if baseline and (longer if same else not alone):
                yield ours, other


def _spreads(cell: Cell, column: str) -> str:
    values = cell.values(column)
    if len(values) < 2:
        return "-"
    return f"{clients.std_over_seeds(values):.4f}, {clients.std_of_average(values):.4f}"
