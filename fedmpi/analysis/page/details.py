"""Sections of the page on single runs: the table of all, one at a time, and where they come from."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from markupsafe import Markup

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.columns import run_columns
from fedmpi.analysis.costs import by_name
from fedmpi.analysis.options import flat
from fedmpi.analysis.page.axes import COLOURS, thinned
from fedmpi.analysis.page.charts import Line, lines, stack, timeline
from fedmpi.analysis.page.collect import ALONE, Digest
from fedmpi.analysis.page.marks import heat_map
from fedmpi.analysis.page.sections import BY_CASE, Section, areas_legend, grid, part, table
from fedmpi.analysis.page.units import MEGABYTES, SECONDS, amounts, human
from fedmpi.analysis.scores import TOGETHER, is_together, splitting_groups
from fedmpi.analysis.stored import commit, hosts
from fedmpi.analysis.summary import method, setting
from fedmpi.metrics.clients import splits
from fedmpi.store.reader import Run
from fedmpi.store.schema import PHASES
from fedmpi.tables.table import Column, listed, number, words

_MOST_LINES = 40
_POINTS = 100
_MOST_RANKS = 64
_AROUND = 64
"""Bytes, at most, of a run's template and its entry in the menu."""

Detail = tuple[str, Markup]
"""The name of a run in the page's menu, and its pictures."""


def detail(run: Run) -> Detail:
    """Draw one run: gradient norms, clusters, time by round and by rank, collectives."""
    drawn: list[Markup] = []
    if run.rounds_completed:
        if not is_together(run.config):
            drawn.append(_gradient_norms(run))
        if setting(run.config, "algorithm") != ALONE and len(np.unique(run.results["group"])) > 1:
            group = np.asarray(run.results["group"], np.int64)
            drawn.append(timeline("Clusters: who was with whom", run.clients, group))
        if run.attempts:
            drawn.append(_phases(run))
            if run.attempts[-1].ranks > 1:
                drawn.append(_imbalance(run))
    name = run.folder.resolve().name
    what = f"{method(run.config)} on {setting(run.config, 'dataset')}, seed {run.config.get('seed')}"
    facts = f"{what}, {run.rounds_completed} of {run.rounds} rounds, {run.status}"
    together = TOGETHER if is_together(run.config) else ""
    head = part("run")(name, facts, _command(run), run.reason, together)
    return name, head + grid(drawn) + (_collectives(run) if run.attempts else "")


def _command(run: Run) -> str:
    """Return the command of the last attempt; nothing where the record has none."""
    given = run.attempts[-1].provenance.get("command", []) if run.attempts else []
    if not given:
        return ""
    ranks = run.attempts[-1].ranks
    return f"mpiexec -n {ranks} " * (ranks > 1) + shlex.join(["fedmpi", *map(str, given[1:])])


def _gradient_norms(run: Run) -> Markup:
    """Return each client's gradient norm, coloured by its cluster at the end."""
    values, final = run.results["gradient_norm"], run.results["group"][-1].tolist()
    clusters = list(dict.fromkeys(final))
    chosen = thinned(len(run.clients), _MOST_LINES).tolist()
    alone = setting(run.config, "algorithm") == ALONE or len(clusters) == 1
    drawn = []
    for client in chosen:
        cluster = clusters.index(final[client])
        dash, colour = divmod(client if alone else cluster, COLOURS)
        label = run.clients[client] + ("" if alone else f" (cluster {cluster + 1})")
        drawn.append(Line(label, colour, dash, values[:, client]))
    marks = sorted({number + 1 for number, _ in splits(splitting_groups(run))})
    by = "a colour per client" if alone else "coloured by cluster at the end"
    some = f", {len(chosen)} of {len(run.clients)} clients" if len(chosen) < len(run.clients) else ""
    about = (run.folder.name, "gradient norm")
    return lines(f"Gradient norms, {by}{some}", about, drawn, True, marks, _POINTS)


def _phases(run: Run) -> Markup:
    """Return seconds by phase and round, mean over ranks."""
    seconds = np.zeros((run.rounds_completed, len(PHASES)))
    for attempt, kept in run.kept_rounds():
        seconds[kept + attempt.first_round] = attempt.measurements["phase_seconds"][kept].mean(axis=1)
    return stack("Time by phase, mean over ranks", "seconds", PHASES, seconds)


def _imbalance(run: Run) -> Markup:
    """Return the seconds of each rank in each phase, over the rounds of the last attempt."""
    *_, (attempt, kept) = run.kept_rounds()
    seconds = attempt.measurements["phase_seconds"][kept].sum(axis=0)
    chosen = thinned(attempt.ranks, _MOST_RANKS)
    names = [f"rank {rank}" for rank in chosen.tolist()]
    title = "Seconds by rank and phase" + (", last attempt" if len(run.attempts) > 1 else "")
    return heat_map(title, "s", names, attempt.phases, seconds[chosen])


def _collectives(run: Run) -> Markup:
    calls = by_name(run, "collective_calls", lambda rounds: rounds.sum(axis=0).max(axis=0))
    sizes = by_name(run, "collective_bytes", lambda rounds: rounds.sum(axis=(0, 1)) / 1e6)
    seconds = by_name(run, "collective_seconds", lambda rounds: rounds.sum(axis=0).max(axis=0, initial=0.0))
    time_of = "of the rank that spends most in it, over all rounds; waiting for others included"
    columns = [
        Column[str]("collective", str),
        Column[str]("calls", lambda name: number(calls[name], 0), "of the rank that makes most"),
        amounts("traffic", sizes.__getitem__, MEGABYTES, "payload of all ranks and rounds"),
        amounts("time", seconds.__getitem__, SECONDS, time_of),
    ]
    return table("Bytes and seconds by collective", columns, list(calls), "")


def fitting(details: Sequence[Detail], room: int) -> int:
    """Return how many runs can be shown: the first, and as many after it as `room` has bytes for."""
    sizes = accumulate(len(content.encode()) + _AROUND for _, content in details[1:])
    return 1 + sum(size <= room for size in sizes)


def one_by_one(details: Sequence[Detail], count: int) -> Section:
    """Return the section in which a menu chooses one of the first `count` runs."""
    left_out = [name for name, _ in details[count:]]
    content = part("one_by_one")(details[:count], left_out, areas_legend("Phases", PHASES))
    return Section("run", "One run at a time: gradients, clusters, ranks", content)


def all_runs(digests: Sequence[Digest]) -> Section:
    """Return the table of all runs, whatever their status."""
    rows = [each.summary for each in digests]
    columns = run_columns(rows, [metric for each in digests for metric in each.metrics])
    return Section("runs", "All runs", table("Every run", columns, rows, "all-runs", BY_CASE))


_ORIGIN = ("cpu_model", "cores", "host", "platform", "python", "device", "torch_threads", "model_flops")


def provenance(digests: Sequence[Digest]) -> Section:
    """Return where the runs come from: one table line for each kind of origin, and their settings."""
    found = grouped(digests, lambda run: json.dumps(_origin(run), sort_keys=True, default=str))
    parts = []
    for place, runs in enumerate(found.values()):
        used = {pair for run in runs for pair in run.provenance.get("datasets", {}).items()}
        datasets = ", ".join(f"{name} {mark[:16]}" for name, mark in sorted(used))
        caption = f"Origin {place + 1} of {len(found)}: {len(runs)} run{'s' * (len(runs) > 1)}"
        about = {**_origin(runs[0]), "datasets": datasets}
        parts.append(_pairs(caption, ("what", "value"), about, f"origin-{place}"))
        parts.append(part("folded")("Its runs", part("text")(", ".join(run.name for run in runs))))
    parts.append(_configurations(digests))
    return Section("provenance", "Provenance", Markup("").join(parts))


def _pairs(caption: str, headings: tuple[str, str], found: Mapping[str, Any], identifier: str) -> Markup:
    rows = [[name, words(value, "any")] for name, value in found.items()]
    return table(caption, listed(headings), rows, identifier)


def _origin(run: Digest) -> dict[str, Any]:
    given = run.provenance
    mpi = given.get("mpi", {})
    packages = {name: each.get("version") for name, each in given.get("packages", {}).items()}
    counters = "; ".join(f"{what}: {by}" for what, by in given.get("energy", {}).items())
    return {
        "commit": commit(given, "no checkout"),
        "numerics version": run.config["numerics_version"],
        "MPI": f"{mpi.get('library', '-')}, {mpi.get('size', '-')} ranks",
        "hosts": ", ".join(hosts(given)),
        "memory": human(given.get("memory_bytes", math.nan) / 1e6, MEGABYTES),
        **{name: given[name] for name in _ORIGIN if name in given},
        **({"energy": counters} if "energy" in given else {}),
        "packages": ", ".join(f"{name} {version}" for name, version in packages.items()),
    }


def _configurations(digests: Sequence[Digest]) -> Markup:
    """Return the settings that all runs share, and of each run those in which it differs."""
    settings = [flat(run.config) for run in digests]
    names = sorted({name for each in settings for name in each})
    first, *others = settings
    shared = {k: v for k, v in first.items() if all(k in each and each[k] == v for each in others)}
    varying = [name for name in names if name not in (*shared, "name")]
    pairs = zip(digests, settings, strict=True)
    rows = [[run.name, *(words(each.get(name, "")) for name in varying)] for run, each in pairs]
    same, other = "Settings that all runs share", "Settings in which runs differ"
    alike = part("folded")(same, _pairs(same, ("setting", "value"), dict(sorted(shared.items())), "shared"))
    return alike + part("folded")(other, table(other, listed(["run", *varying]), rows, "varying"))
