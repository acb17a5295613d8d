"""``fedmpi analyse``: its commands and their options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from fedmpi.cli.options import Commands, Data, Json, OneCase, Runs, Set, SuiteName

if TYPE_CHECKING:
    from fedmpi.heterogeneity.distances import WalkOptions

app = Commands(help="Statistics of graphs and datasets; leakage between splits.", no_args_is_help=True)

Datasets = Annotated[list[str] | None, typer.Argument(help="Datasets or groups; by default the paper's.")]
AnalysisSeed = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of random graphs, walks and drawn pairs.")
]
AsPublished = Annotated[
    bool, typer.Option("--as-published", help="Choices that fit the paper's numbers; see docs/analyses.md.")
]


@dataclass(frozen=True)
class Walks:
    """The anonymous walks by which structures are compared."""

    length: Annotated[int, typer.Option(help="Steps of the anonymous walks.")] = 4
    walks: Annotated[int | None, typer.Option(help="Walks per graph; default by the bound.")] = None
    seed: AnalysisSeed = 0

    def options(self) -> WalkOptions:
        """Return them checked."""
        from fedmpi.heterogeneity.distances import WalkOptions

        return WalkOptions(self.length, self.walks, self.seed)


@app.command("properties")
def analyse_properties(
    data: Data,
    names: Datasets = None,
    seed: AnalysisSeed = 0,
    as_published: AsPublished = False,
    as_json: Json = False,
) -> int:
    """Graph properties beside those of random graphs (GCFL, Table 1)."""
    from fedmpi.cli import analyse as command

    return command.properties(names or [], data, seed, as_published, as_json)


@app.command("statistics")
def analyse_statistics(data: Data, names: Datasets = None, as_json: Json = False) -> int:
    """Sizes of datasets (GCFL, Table 5)."""
    from fedmpi.cli import analyse as command

    return command.statistics(names or [], data, as_json)


@app.command("heterogeneity")
def analyse_heterogeneity(
    data: Data, walks: Walks, names: Datasets = None, as_published: AsPublished = False, as_json: Json = False
) -> int:
    """Structure and feature heterogeneity in a dataset, or across several (GCFL, Table 2)."""
    from fedmpi.cli import analyse as command

    return command.heterogeneity(names or [], data, walks.options(), as_published, as_json)


@app.command("leakage")
def analyse_leakage(
    target: SuiteName, data: Data, case: OneCase = None, set_: Set = None, as_json: Json = False
) -> int:
    """Test graphs that have an isomorphic twin in a training set, by partition of a suite."""
    from fedmpi.cli import analyse as command

    return command.leakage(target, data, case, set_ or [], as_json)


@app.command("clusters")
def analyse_clusters(runs: Runs, data: Data, walks: Walks, as_json: Json = False) -> int:
    """Heterogeneity within the clusters that runs found, and do clusters follow domains (GCFL, Figure 3)."""
    from fedmpi.cli import analyse_clusters as command

    return command.clusters(runs, data.source(), walks.options(), as_json)
