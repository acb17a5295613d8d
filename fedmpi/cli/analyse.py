"""``fedmpi analyse``: statistics of graphs and datasets, and leakage between splits.

Each command returns its exit code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from operator import attrgetter
from typing import Annotated, Any

import typer

from fedmpi.case.schema import Case
from fedmpi.cli.options import Data, Json, OneCase, Seed, Set, SuiteName, Walks
from fedmpi.cli.plan import Selection
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
from fedmpi.heterogeneity.leakage import Leakage
from fedmpi.heterogeneity.leakage import leakage as find_leakage
from fedmpi.heterogeneity.properties import Comparison, Statistics, compare
from fedmpi.heterogeneity.properties import statistics as count
from fedmpi.partition.partition import make
from fedmpi.registry.check import check_suite
from fedmpi.tables.table import Column, Table, fields, listed

Datasets = Annotated[list[str] | None, typer.Argument(help="Datasets or groups; by default the paper's.")]
Published = Annotated[bool, typer.Option(help="Choices that fit the paper's numbers; see docs/analyses.md.")]


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
    data: Data, names: Datasets = None, seed: Seed = 0, as_published: Published = False, as_json: Json = False
) -> int:
    """Graph properties beside those of random graphs (GCFL, Table 1).

    Examples
    --------
    fedmpi analyse properties PROTEINS
    """
    raws = _named(data, names or list(published.TABLE_1))
    rows = [row for raw in raws for row in compare(raw, seed, as_published)]
    if as_json:
        settings = {"seed": seed, "as_published": as_published}
        return print_json({**settings, "properties": [asdict(row) for row in rows]})
    drawn = "G(n, p)" if as_published else "G(n, m)"
    return show(Table(_PROPERTIES, rows, f"Properties of graphs and of random ones (seed {seed}); {drawn}"))


def _published(place: int) -> Callable[[Comparison], float | str | None]:
    """Return what the paper says of a property: its real and random value, and how it puts p."""
    return lambda row: published.TABLE_1.get(row.dataset, {}).get(row.property, (None,) * 3)[place]


_PROPERTIES: tuple[Column[Comparison], ...] = (
    *fields("dataset", "property"),
    *fields("real", "random", form=".4f"),
    Column("p real > random", attrgetter("greater"), format=".2g"),
    Column("p real < random", attrgetter("less"), format=".2g"),
    Column("p two-sided", attrgetter("two_sided"), format=".2g"),
    Column("paper real", _published(0), format="g"),
    Column("paper random", _published(1), format="g"),
    Column("paper p", _published(2), numeric=True),
)


def statistics(data: Data, names: Datasets = None, as_json: Json = False) -> int:
    """Sizes of datasets (GCFL, Table 5).

    Examples
    --------
    fedmpi analyse statistics PROTEINS NCI1
    """
    rows = [count(raw) for name in names or published.TABLE_5 for raw in _named(data, [name])]
    if as_json:
        return print_json({"statistics": [asdict(row) for row in rows]})
    return show(Table(_STATISTICS, rows, "Sizes of datasets (nodes and edges: averages per graph)"))


def _published_sizes(row: Statistics) -> str | None:
    theirs = published.TABLE_5.get(row.name)
    return "{} / {:.2f} / {:.2f} / {} / {}".format(*theirs) if theirs else None


_STATISTICS: tuple[Column[Statistics], ...] = (
    Column("dataset", attrgetter("name")),
    *fields("graphs"),
    *fields("nodes", "edges", form=".2f"),
    *fields("classes", "features"),
    Column("columns", attrgetter("feature_width")),
    Column("paper", _published_sizes, numeric=True),
)


def heterogeneity(
    data: Data, walks: Walks, names: Datasets = None, as_published: Published = False, as_json: Json = False
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
    number = options.walks or "by the bound"
    title = f"Heterogeneity (walk length {options.length}, walks per graph {number}, seed {options.seed})"
    return show(Table(_HETEROGENEITY, rows, title))


def _published_spread(place: int) -> Callable[[Heterogeneity], str | None]:
    def entry(row: Heterogeneity) -> str | None:
        theirs = published.TABLE_2.get(row.datasets)
        return "{:.4f} ±{:.4f}".format(*theirs[place]) if theirs else None

    return entry


def _spread(spread: Spread) -> str:
    error = f" (s.e. {spread.standard_error:.1g})" if spread.standard_error else ""
    return f"{spread.mean:.4f} ±{spread.std:.4f}{error}"


_HETEROGENEITY: tuple[Column[Heterogeneity], ...] = (
    Column("datasets", lambda row: " + ".join(row.datasets)),
    Column("pairs", lambda row: row.structure.pairs),
    Column("structure", lambda row: _spread(row.structure), numeric=True),
    Column("features", lambda row: _spread(row.features), numeric=True),
    Column("paper structure", _published_spread(0), numeric=True),
    Column("paper features", _published_spread(1), numeric=True),
)


def leakage(
    target: SuiteName, data: Data, case: OneCase = None, set_: Set = None, as_json: Json = False
) -> int:
    """Test graphs with an isomorphic twin in a training set, and nodes or edges that are in one.

    Examples
    --------
    fedmpi analyse leakage gcfl/proteins
    """
    suite = read(locations.find(target), set_ or [])
    cases = [checked.case for checked in check_suite(suite, partial(Selection(case).of, suite))]
    records = []
    for each in _distinct_partitions(cases):
        raws = _load(data, each.dataset)
        partition = make(each.partition, raws)
        result = find_leakage(partition.trained, raws)
        records.append(_leakage(each, result, len(partition.clients)))
    return print_json({"leakage": records}) if as_json else show(*map(_leakage_table, records))


def _distinct_partitions(cases: Sequence[Case]) -> list[Case]:
    """Return the first case of each partition: leakage does not depend on the rest."""
    first: dict[tuple[DatasetOptions, str], Case] = {}
    for case in cases:
        plain = case.dataset.model_copy(update={"features": "original"})
        first.setdefault((plain, case.partition.model_dump_json()), case)
    return list(first.values())


def _leakage(case: Case, found: Leakage, clients: int) -> dict[str, Any]:
    """Return how many test examples the first clients have, and of how many there is a twin where."""
    parts = {"own": "own", "other": "other", "none": "clean"}
    rows = [
        {"client": each.client, "dataset": each.dataset, "test": len(each.own)}
        | {name: int(getattr(each, part).sum()) for name, part in parts.items()}
        for each in found.clients[:clients]
    ]
    return {
        "dataset": case.dataset.name,
        "partition": case.partition.model_dump(mode="json"),
        "distinct": [asdict(each) for each in found.datasets],
        "clients": rows,
    }


_LEAKAGE = ("client", "dataset", "test examples", "twin in own training", "in another's", "in none")


def _leakage_table(record: dict[str, Any]) -> Table[Sequence[object]]:
    distinct = "; ".join("{dataset}: {distinct} of {graphs}".format(**each) for each in record["distinct"])
    rows = [list(client.values()) for client in record["clients"]]
    total = ["all", "", *(sum(column) for column in list(zip(*rows, strict=True))[2:])]
    title = f"{record['dataset']}, {record['partition']['name']}; distinct: {distinct}"
    return Table(listed(_LEAKAGE), [*rows, total], title, ruled=[len(rows)])
