"""``fedmpi analyse clusters``: heterogeneity within the clusters of finished or running cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fedmpi.analysis.clusterings import KINDS, ClusteredRun, Clustering, Compared, TableMaker, clustered
from fedmpi.analysis.discovery import run_paths
from fedmpi.analysis.stored import read_run
from fedmpi.analysis.summary import setting
from fedmpi.cli.options import Data, Json, Runs, Walks
from fedmpi.cli.terminal import print_json, show
from fedmpi.heterogeneity.clusters import DRAWS, Control, Level
from fedmpi.heterogeneity.distances import WalkOptions
from fedmpi.tables.table import Entry, Table, listed, number

Rows = Table[Sequence[object]]


def clusters(runs: Runs, data: Data, walks: Walks, as_json: Json = False) -> int:
    """Heterogeneity within the clusters that runs found, and do clusters follow domains (GCFL, Figure 3).

    Examples
    --------
    fedmpi analyse clusters results/runs/gcfl/table3
    """
    options = walks.options()
    maker = TableMaker(data.source(), options)
    found = [clustered(read_run(path), maker) for place in runs for path in run_paths(place)]
    if as_json:
        records = [_record(run) for run in found]
        return print_json({**asdict(options), "random_partitions": DRAWS, "runs": records})
    return show(_final_table(found, options), *map(_names, found), "", _rounds_table(found))


def _final_table(found: Sequence[ClusteredRun], options: WalkOptions) -> Rows:
    error = _largest_error(found)
    drawn = f"; pairs drawn, standard errors up to {error:.1g}" if error else ""
    title = (
        f"Mean distance of two graphs in a cluster (walk length {options.length}, walks per graph "
        f"{options.walks or 'by the bound'}, seed {options.seed}{drawn}). "
        f"Random: {DRAWS} partitions into clusters of the same sizes; in brackets the share of them whose "
        "value is at most that of the clusters. "
        "Different clients: without pairs of graphs of one client, which are all that a cluster of one has."
    )
    measured = ("before", "clusters", "random")
    headings = ("run", "kind", *measured, f"different clients: {measured[0]}", *measured[1:])
    rows: list[list[object]] = []
    for run in found:
        for kind in KINDS:
            before, after = run.before.scopes[kind], run.clusterings[-1].scopes[kind]
            every = (_level(before.every.found), *_compared(after.every))
            different = (_level(before.different.found), *_compared(after.different))
            rows.append([_case(run), kind, *every, *different])
    return Table(listed(headings), rows, title)


def _largest_error(found: Sequence[ClusteredRun]) -> float:
    """Return the largest standard error of all that is printed, 0 where every pair was looked at."""
    errors = [
        compared.found.standard_error
        for run in found
        for each in (run.before, *run.clusterings)
        for scopes in each.scopes.values()
        for compared in (scopes.every, scopes.different)
        if compared.found.pairs
    ]
    return max(errors, default=0.0)


def _rounds_table(found: Sequence[ClusteredRun]) -> Rows:
    title = (
        "By round (the first that ended with these clusters). ARI: adjusted Rand index of clusters and the "
        "domains of their datasets; in brackets the share of random partitions whose index is at least that."
    )
    headings = ("run", "round", "sizes", "structure", "random", "features", "random", "ARI", "random")
    rows: list[list[object]] = []
    for run in found:
        for each in run.clusterings:
            sizes = " ".join(str(len(cluster)) for cluster in each.clusters)
            compared = [entry for kind in KINDS for entry in _compared(each.scopes[kind].every)]
            rows.append([_case(run), each.round, sizes, *compared, *_agreement(each)])
    return Table(listed(headings), rows, title)


def _level(level: Level) -> Entry:
    return number(level.mean if level.pairs else None, 4)


def _compared(compared: Compared) -> tuple[Entry, Entry | None]:
    random = compared.random
    return _level(compared.found), _control(random, random.as_low)


def _control(control: Control, share: float) -> Entry | None:
    """Return the control's entry; none where every random partition gives the same, which says nothing."""
    if math.isnan(share) or control.constant:
        return None
    return Entry(f"{control.mean:.4f} ±{control.std:.4f} ({share:.2f})", control.mean)


def _agreement(clustering: Clustering) -> tuple[Entry | None, Entry | None]:
    found = clustering.agreement
    if found is None:
        return None, None
    return number(found.adjusted_rand_index, 4), _control(found.random, found.random.as_high)


def _names(found: ClusteredRun) -> str:
    last = found.clusterings[-1]
    groups = " | ".join(" ".join(cluster) for cluster in last.clusters)
    unfinished = f", {found.run.status} after round {found.run.rounds_completed}"
    state = "" if found.run.status == "complete" else unfinished
    left_out = f"; {found.left_out} graphs without edges left out" if found.left_out else ""
    return f"{_case(found)} (since round {last.round}{state}): {groups}{left_out}"


def _case(found: ClusteredRun) -> str:
    return found.run.folder.resolve().name


def _record(found: ClusteredRun) -> dict[str, Any]:
    run = found.run
    return {
        "case": _case(found),
        "folder": str(run.folder),
        "dataset": setting(run.config, "dataset"),
        "algorithm": setting(run.config, "algorithm"),
        "seed": run.config.get("seed"),
        "status": run.status,
        "rounds": run.rounds_completed,
        "left_out": found.left_out,
        "before": {
            kind: {"every": asdict(scopes.every.found), "different": asdict(scopes.different.found)}
            for kind, scopes in found.before.scopes.items()
        },
        "clusterings": [_clustering_record(each) for each in found.clusterings],
    }


def _clustering_record(clustering: Clustering) -> dict[str, Any]:
    return {
        "round": clustering.round,
        "clusters": clustering.clusters,
        **{kind: asdict(scopes) for kind, scopes in clustering.scopes.items()},
        "agreement": asdict(clustering.agreement) if clustering.agreement else None,
    }
