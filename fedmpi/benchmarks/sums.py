"""Rounds of one case with several reductions, in turn: what a secure sum adds to a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from fedmpi.benchmarks.federation import Prepared, deterministic, prepare
from fedmpi.benchmarks.samples import Measurement, Report, Samples, Turns, figures_of, ratios
from fedmpi.clock import Stopwatch
from fedmpi.comm.world import World
from fedmpi.datasets.source import DataSource
from fedmpi.registry.check import Checked
from fedmpi.runs.signals import StopRequest


def measure(cases: Sequence[Checked], source: DataSource, world: World, turns: Turns) -> Report:
    """Run a round of each case after a round of the others, all in one process.

    Parameters
    ----------
    cases : sequence of Checked
        The same case but for its reduction; the others are compared with the first.
    source : DataSource
    world : World
    turns : Turns
        The first round holds the keys of the run.

    Returns
    -------
    Report
        Per reduction: CPU seconds of a round and of the steps of a secure sum, and the round's ratio to the
        first one's, with and without the steps before the upload that need no update (keys, shares).
    """
    prepared = {checked.case.reduction.name: prepare(checked, source, world) for checked in cases}
    first_name, *others = prepared
    with deterministic(True):
        rounds = turns.of({name: partial(_round, each) for name, each in prepared.items()})
    samples = {name: figures_of(rows) for name, rows in rounds.items()}
    first = samples[first_name]["cpu"]
    for name in others:
        for figure in ("cpu", "online"):
            samples[name][f"{figure} / {first_name}"] = ratios(samples[name][figure], first)
    settings = {"case": cases[0].case.config(), **vars(turns)}
    statements = [_statement(name, first_name, samples[name]) for name in others]
    measurements = [Measurement({"reduction": name}, figures) for name, figures in samples.items()]
    return Report("sums", settings, measurements, {}, statements)


def _round(prepared: Prepared, number: int) -> dict[str, float]:
    """Run a round; return its CPU seconds and those of its secure steps."""
    meter = prepared.rounds.meter
    before, watch = dict(meter.steps_cpu), Stopwatch()
    prepared.rounds.run(number, stop=StopRequest(), checkpoint=False)
    whole = watch.cpu
    steps = {name: meter.steps_cpu[name] - seconds for name, seconds in before.items()}
    offline = sum(steps.get(name, 0.0) for name in ("keys", "shares"))
    return {"cpu": whole, "online": whole - offline, **steps}


def _statement(name: str, first: str, figures: Mapping[str, Samples]) -> str:
    whole, online = (100 * (figures[f"{part} / {first}"].median - 1) for part in ("cpu", "online"))
    return (
        f"A round with {name} takes {whole:+.0f} % of CPU time against one with {first}, {online:+.0f} % "
        "without keys and shares (medians of pairs)."
    )
