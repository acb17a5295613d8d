"""``fedmpi analyse``: its commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedmpi.cli.options import Cache, Json, Mirror, Offline, Set

app = typer.Typer(help="Statistics of graphs and datasets; leakage between splits.", no_args_is_help=True)

SuiteName = Annotated[str, typer.Argument(help="A suite: a file or a bundled name such as gcfl/proteins.")]
Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.")]
Datasets = Annotated[list[str] | None, typer.Argument(help="Datasets or groups; by default the paper's.")]
AnalysisSeed = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of random graphs, walks and drawn pairs.")
]
WalkLength = Annotated[int, typer.Option("--length", help="Steps of the anonymous walks.")]
Walks = Annotated[int | None, typer.Option("--walks", help="Walks per graph; default by the bound.")]
AsPublished = Annotated[
    bool, typer.Option("--as-published", help="Choices that fit the paper's numbers; see docs/analyses.md.")
]


@app.command("properties")
def analyse_properties(
    names: Datasets = None,
    seed: AnalysisSeed = 0,
    as_published: AsPublished = False,
    as_json: Json = False,
    mirror: Mirror = None,
    data: Cache = None,
    offline: Offline = None,
) -> int:
    """Graph properties beside those of random graphs (GCFL, Table 1)."""
    from fedmpi.cli import analyse as command

    return command.properties(names or [], command.Data(data, mirror, offline), seed, as_published, as_json)


@app.command("statistics")
def analyse_statistics(
    names: Datasets = None,
    as_json: Json = False,
    mirror: Mirror = None,
    data: Cache = None,
    offline: Offline = None,
) -> int:
    """Sizes of datasets (GCFL, Table 5)."""
    from fedmpi.cli import analyse as command

    return command.statistics(names or [], command.Data(data, mirror, offline), as_json)


@app.command("heterogeneity")
def analyse_heterogeneity(
    names: Datasets = None,
    length: WalkLength = 4,
    walks: Walks = None,
    seed: AnalysisSeed = 0,
    as_published: AsPublished = False,
    as_json: Json = False,
    mirror: Mirror = None,
    data: Cache = None,
    offline: Offline = None,
) -> int:
    """Structure and feature heterogeneity in a dataset, or across several (GCFL, Table 2)."""
    from fedmpi.cli import analyse as command
    from fedmpi.heterogeneity.distances import WalkOptions

    options = WalkOptions(length, walks, seed)
    places = command.Data(data, mirror, offline)
    return command.heterogeneity(names or [], places, options, as_published, as_json)


@app.command("leakage")
def analyse_leakage(
    target: SuiteName,
    case: Annotated[str | None, typer.Option(help="Only this case: its number (from 0) or name.")] = None,
    set_: Set = None,
    as_json: Json = False,
    mirror: Mirror = None,
    data: Cache = None,
    offline: Offline = None,
) -> int:
    """Test graphs that have an isomorphic twin in a training set, by partition of a suite."""
    from fedmpi.cli import analyse as command

    return command.leakage(target, command.Data(data, mirror, offline), case, set_ or [], as_json)


@app.command("clusters")
def analyse_clusters(
    runs: Runs,
    length: WalkLength = 4,
    walks: Walks = None,
    seed: AnalysisSeed = 0,
    as_json: Json = False,
    mirror: Mirror = None,
    data: Cache = None,
    offline: Offline = None,
) -> int:
    """Heterogeneity within the clusters that runs found, and do clusters follow domains (GCFL, Figure 3)."""
    from fedmpi.cli import analyse_clusters as command
    from fedmpi.datasets.source import DataSource
    from fedmpi.heterogeneity.distances import WalkOptions

    source = DataSource.from_environment(data, mirror, offline)
    return command.clusters(runs, source, WalkOptions(length, walks, seed), as_json)
