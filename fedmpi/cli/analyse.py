"""``fedmpi analyse``: statistics of graphs and datasets, and leakage between splits.

Each command returns its exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from fedmpi.case.schema import Case
from fedmpi.cli.options import AnalysisSeed, Data, Json, OneCase, Set, SuiteName, Walks
from fedmpi.cli.plain_table import PlainTable
from fedmpi.cli.terminal import print_json, show
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.datasets.loading import load_all, options_class
from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.raw import RawGraphs
from fedmpi.errors import BadInput
from fedmpi.heterogeneity import published
from fedmpi.heterogeneity.distances import Heterogeneity, Spread
from fedmpi.heterogeneity.distances import heterogeneity as measure_heterogeneity
from fedmpi.heterogeneity.leakage import ClientLeakage, Leakage
from fedmpi.heterogeneity.leakage import leakage as find_leakage
from fedmpi.heterogeneity.properties import Comparison, compare
from fedmpi.heterogeneity.statistics import Statistics
from fedmpi.heterogeneity.statistics import statistics as count
from fedmpi.partition.partition import make
from fedmpi.registry.check import check_suite

Datasets = Annotated[list[str] | None, typer.Argument(help="Datasets or groups; by default the paper's.")]
AsPublished = Annotated[
    bool, typer.Option("--as-published", help="Choices that fit the paper's numbers; see docs/analyses.md.")
]


def _load(data: Data, options: DatasetOptions) -> tuple[RawGraphs, ...]:
    """Prepare and load the datasets behind a name."""
    source = data.source()
    for member in source.members(options.name):
        source.prepare(member)
    return load_all(options, source)


def _named(data: Data, names: Sequence[str]) -> list[RawGraphs]:
    """Load datasets and the members of groups, in order."""
    if "" in names:
        raise BadInput("an empty name is no dataset's; 'fedmpi data list' shows those known")
    asked = [options_class({"name": name})(name=name) for name in names]
    return [raw for options in asked for raw in _load(data, options)]


def properties(
    data: Data,
    names: Datasets = None,
    seed: AnalysisSeed = 0,
    as_published: AsPublished = False,
    as_json: Json = False,
) -> int:
    """Graph properties beside those of random graphs (GCFL, Table 1).

    Examples
    --------
    fedmpi analyse properties PROTEINS
    """
    rows: list[Comparison] = []
    for raw in _named(data, names or list(published.TABLE_1)):
        rows.extend(compare(raw, seed, as_published))
    if as_json:
        return print_json(
            {"seed": seed, "as_published": as_published, "properties": [asdict(row) for row in rows]}
        )
    headings = ("dataset", "property", "real", "random", "p real > random", "p real < random", "p two-sided")
    title = (
        f"Properties of graphs and of random ones (seed {seed}); {'G(n, p)' if as_published else 'G(n, m)'}"
    )
    table = PlainTable(title, (*headings, "paper real", "paper random", "paper p"), 2)
    return show(table.with_lines(map(_property_cells, rows)))


def _property_cells(row: Comparison) -> tuple[str, ...]:
    theirs = published.TABLE_1.get(row.dataset, {}).get(row.property)
    paper = (f"{theirs[0]:g}", f"{theirs[1]:g}", theirs[2]) if theirs else ("", "", "")
    chances = (f"{chance:.2g}" for chance in (row.greater, row.less, row.two_sided))
    return (row.dataset, row.property, f"{row.real:.4f}", f"{row.random:.4f}", *chances, *paper)


def statistics(data: Data, names: Datasets = None, as_json: Json = False) -> int:
    """Sizes of datasets (GCFL, Table 5).

    Examples
    --------
    fedmpi analyse statistics PROTEINS NCI1
    """
    rows = [count(raw) for name in names or published.TABLE_5 for raw in _named(data, [name])]
    if as_json:
        return print_json({"statistics": [asdict(row) for row in rows]})
    headings = ("dataset", "graphs", "nodes", "edges", "classes", "features", "columns", "paper")
    table = PlainTable("Sizes of datasets (nodes and edges: averages per graph)", headings, 1)
    return show(table.with_lines(map(_statistics_cells, rows)))


def _statistics_cells(row: Statistics) -> tuple[object, ...]:
    theirs = published.TABLE_5.get(row.name)
    paper = "{} / {:.2f} / {:.2f} / {} / {}".format(*theirs) if theirs else ""
    averages = (f"{row.nodes:.2f}", f"{row.edges:.2f}")
    return (row.name, row.graphs, *averages, row.classes, row.features, row.feature_width, paper)


def heterogeneity(
    data: Data, walks: Walks, names: Datasets = None, as_published: AsPublished = False, as_json: Json = False
) -> int:
    """Structure and feature heterogeneity in a dataset, or across several (GCFL, Table 2).

    Without a name: the paper's five columns.

    Examples
    --------
    fedmpi analyse heterogeneity gcfl/proteins
    """
    options = walks.options()
    columns = [tuple(names)] if names else list(published.TABLE_2)
    rows = [measure_heterogeneity(_named(data, column), options, as_published) for column in columns]
    if as_json:
        settings = {**asdict(options), "as_published": as_published}
        return print_json({**settings, "heterogeneity": [asdict(row) for row in rows]})
    headings = ("datasets", "pairs", "structure", "features", "paper structure", "paper features")
    number = options.walks or "by the bound"
    title = f"Heterogeneity (walk length {options.length}, walks per graph {number}, seed {options.seed})"
    return show(PlainTable(title, headings, 1).with_lines(map(_heterogeneity_cells, rows)))


def _heterogeneity_cells(row: Heterogeneity) -> tuple[str, ...]:
    theirs = published.TABLE_2.get(row.datasets)
    paper = tuple(f"{mean:.4f} ±{std:.4f}" for mean, std in theirs) if theirs else ("", "")
    ours = (_spread(row.structure), _spread(row.features))
    return (" + ".join(row.datasets), str(row.structure.pairs), *ours, *paper)


def _spread(spread: Spread) -> str:
    error = f" (s.e. {spread.standard_error:.1g})" if spread.standard_error else ""
    return f"{spread.mean:.4f} ±{spread.std:.4f}{error}"


def leakage(
    target: SuiteName, data: Data, case: OneCase = None, set_: Set = None, as_json: Json = False
) -> int:
    """Test graphs with an isomorphic twin in a training set, and nodes or edges that are in one.

    Examples
    --------
    fedmpi analyse leakage gcfl/proteins
    """
    wanted = _distinct_partitions(_cases(target, case, set_ or []))
    found = []
    for each in wanted:
        raws = _load(data, each.dataset)
        partition = make(each.partition, raws)
        result = find_leakage(partition.trained, raws)
        found.append((each, replace(result, clients=result.clients[: len(partition.clients)])))
    if as_json:
        return print_json({"leakage": [_leakage_record(each, result) for each, result in found]})
    return show(*(_leakage_table(each, result) for each, result in found))


def _cases(target: str, case: str | None, overrides: Sequence[str]) -> list[Case]:
    cases = [checked.case for checked in check_suite(read(locations.find(target), overrides))]
    if case is None:
        return cases
    if case.isdigit() and int(case) < len(cases):
        return [cases[int(case)]]
    chosen = [each for each in cases if each.name == case]
    if not chosen:
        raise BadInput(
            f"--case {case}: no such case of {target}; 'fedmpi run {target} --list' shows its {len(cases)}"
        )
    return chosen


def _distinct_partitions(cases: Sequence[Case]) -> list[Case]:
    """Return the first case of each partition: leakage does not depend on the rest."""
    first: dict[tuple[DatasetOptions, str], Case] = {}
    for case in cases:
        plain = case.dataset.model_copy(update={"features": "original"})
        first.setdefault((plain, case.partition.model_dump_json()), case)
    return list(first.values())


def _leakage_table(case: Case, result: Leakage) -> PlainTable:
    distinct = "; ".join(f"{each.dataset}: {each.distinct} of {each.graphs}" for each in result.datasets)
    title = f"{case.dataset.name}, {case.partition.name}; distinct: {distinct}"
    headings = ("client", "dataset", "test examples", "twin in own training", "in another's", "in none")
    table = PlainTable(title, headings, 2)
    counts = [_twins(client) for client in result.clients]
    for client, found in zip(result.clients, counts, strict=True):
        table.add_line(client.client, client.dataset, *found.values())
    table.add_section()
    table.add_line("all", "", *(sum(found[name] for found in counts) for name in counts[0]))
    return table


def _twins(client: ClientLeakage) -> dict[str, int]:
    """Return how many test examples a client has, and of how many there is a twin where."""
    masks = {"own": client.own, "other": client.other, "none": client.clean}
    return {"test": len(client.own), **{name: int(mask.sum()) for name, mask in masks.items()}}


def _leakage_record(case: Case, result: Leakage) -> dict[str, Any]:
    clients = [
        {"client": client.client, "dataset": client.dataset, **_twins(client)} for client in result.clients
    ]
    return {
        "dataset": case.dataset.name,
        "partition": case.partition.model_dump(mode="json"),
        "distinct": [asdict(each) for each in result.datasets],
        "clients": clients,
    }
