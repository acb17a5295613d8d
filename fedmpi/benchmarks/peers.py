"""The same rounds here and in a peer, ``bench/peers/`` in plain PyTorch Geometric: times and accuracies."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from fedmpi.benchmarks.federation import Prepared, deterministic, prepare
from fedmpi.benchmarks.machine import times
from fedmpi.benchmarks.samples import Measurement, Report, Samples, Turns, against_peer, figures_of
from fedmpi.comm.world import World
from fedmpi.config import locations
from fedmpi.datasets.source import DataSource
from fedmpi.judging.estimates import half_widths
from fedmpi.registry.check import Checked
from fedmpi.runs.reporting import RoundReport
from fedmpi.runs.signals import StopRequest

Floats = npt.NDArray[np.float64]


def load_reference(name: str = "reference") -> ModuleType:
    """Import a peer's script, which lies among the suites: ``reference`` for graphs, or ``networks``."""
    path = locations.find("peers/fedavg").with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"fedmpi_peer_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Engine:
    """A case whose rounds are timed."""

    def __init__(self, checked: Checked, source: DataSource, world: World) -> None:
        self.prepared: Prepared = prepare(checked, source, world)
        self._stop = StopRequest()
        self._round = 0

    def own_round(self) -> RoundReport:
        """Run a round of the engine: everything but record and checkpoint."""
        with deterministic(True):
            _, report = self.prepared.rounds.run(self._round, stop=self._stop, checkpoint=False)
        self._round += 1
        assert report is not None
        return report


class Pair(Engine):
    """A case in the engine, and the peer on the same graphs of the same clients."""

    def __init__(self, checked: Checked, source: DataSource, world: World) -> None:
        super().__init__(checked, source, world)
        case = self.prepared.case
        raws, partition = self.prepared.raws, self.prepared.partition
        if raws[0].examples == "graph":
            self.peer = load_reference().federation(raws, partition, case.seed, self.prepared.device)
        else:
            self.peer = load_reference("networks").federation(raws, partition, case)

    def peer_round(self) -> None:
        """Run a round of the peer, with torch as a user finds it."""
        with deterministic(False):
            self.peer.round()


def compare_times(cases: Sequence[Checked], source: DataSource, world: World, turns: Turns) -> Report:
    """Time rounds of peer and engine in turn, case by case.

    Returns
    -------
    Report
        Per case and program the wall-clock and CPU seconds of each round, and per case the ratio peer /
        fedmpi of each pair of rounds; in `results` its median with a 95 % interval.
    """
    measurements: list[Measurement] = []
    results: dict[str, Any] = {}
    statements = []
    for checked in cases:
        name = checked.case.name
        peer, own = times_in_turn(Pair(checked, source, world), turns)
        found, results[name] = against_peer({"setting": name}, peer, own)
        measurements += found
        statements.append(_times_statement(name, peer, own, results[name]))
    settings = {"settings": [each.case.name for each in cases], **vars(turns)}
    return Report("peers", settings, measurements, results, statements)


def times_in_turn(pair: Pair, turns: Turns) -> tuple[dict[str, Samples], dict[str, Samples]]:
    """Return wall-clock and CPU seconds of peer and engine, a round of each in turn."""
    found = actions_in_turn({"peer": pair.peer_round, "fedmpi": pair.own_round}, pair.prepared.device, turns)
    return found["peer"], found["fedmpi"]


def actions_in_turn(
    actions: Mapping[str, Callable[[], object]], device: torch.device, turns: Turns
) -> dict[str, dict[str, Samples]]:
    """Return wall-clock and CPU seconds of each action, all of them in every turn."""
    timed = turns.of({name: partial(_timed, action, device) for name, action in actions.items()})
    return {name: figures_of(samples) for name, samples in timed.items()}


def _timed(action: Callable[[], object], device: torch.device, turn: int) -> dict[str, float]:
    return times(action, device)


def _times_statement(
    name: str, peer: dict[str, Samples], own: dict[str, Samples], found: dict[str, dict[str, float]]
) -> str:
    parts = [
        f"{key.split('_')[0]} {each['median']:.2f}x (95 %: {each['low']:.2f} to {each['high']:.2f})"
        for key, each in found.items()
    ]
    times = [1e3 * each["wall_seconds"].median for each in (peer, own)]
    return f"{name}: peer / fedmpi {', '.join(parts)}; {times[0]:.1f} and {times[1]:.1f} ms a round"


def compare_accuracies(
    cases: Sequence[Checked], source: DataSource, world: World, rounds: int, seeds: Sequence[int]
) -> Report:
    """Run both programs over several seeds and compare the curves of their mean test accuracies.

    The accuracy of a round is that of the new models, after the download, averaged over clients. A band is
    the 95 % t interval of a program's mean over the seeds, round by round.

    Parameters
    ----------
    cases : sequence of Checked
    source : DataSource
    world : World
    rounds : int
        Rounds of each run.
    seeds : sequence of int
        Each case runs once with each of them.

    Returns
    -------
    Report
        Per case, program and seed the accuracy of each round; in `results` curves, bands, and the share of
        rounds in which each mean lies within the other's band.
    """
    measurements: list[Measurement] = []
    results: dict[str, Any] = {}
    statements = []
    for checked in cases:
        name = checked.case.name
        curves = [_curves(checked, seed, source, world, rounds) for seed in seeds]
        tables = {program: np.array([each[program] for each in curves]) for program in ("peer", "fedmpi")}
        for program, table in tables.items():
            for seed, curve in zip(seeds, table, strict=True):
                labels: dict[str, str | int] = {"setting": name, "program": program, "seed": seed}
                measurements.append(Measurement(labels, {"test_accuracy": Samples.of("1", curve)}))
        results[name] = compare_curves(tables["peer"], tables["fedmpi"])
        statements.append(_curves_statement(name, len(seeds), results[name]))
    settings = {"settings": [c.case.name for c in cases], "rounds": rounds, "seeds": list(seeds)}
    return Report("peers-accuracy", settings, measurements, results, statements)


def _curves(
    checked: Checked, seed: int, source: DataSource, world: World, rounds: int
) -> dict[str, list[float]]:
    """Return the accuracy of each round of both programs with a seed."""
    pair = Pair(Checked(checked.case.model_copy(update={"seed": seed}), checked.algorithm), source, world)

    def peer() -> float:
        pair.peer_round()
        return float(pair.peer.test_accuracy())

    def own() -> float:
        return float(np.mean(pair.own_round().results["test_accuracy"]))

    programs: dict[str, Callable[[], float]] = {"peer": peer, "fedmpi": own}
    return {name: [step() for _ in range(rounds)] for name, step in programs.items()}


def compare_curves(peer: Floats, own: Floats) -> dict[str, Any]:
    """Compare two sets of curves, float64 [seeds, rounds] each.

    Returns
    -------
    dict
        Per program `mean`, `low`, `high` by round; `own_in_peer_band`, `peer_in_own_band`: share of rounds
        in which the one's mean lies within the other's band; `expected`: the share to expect of two programs
        that draw from one distribution; `difference`: fedmpi minus peer in the last round, with Welch's 95 %
        interval.
    """
    from scipy.stats import ttest_ind

    means = {"peer": peer.mean(axis=0), "fedmpi": own.mean(axis=0)}
    halves = {"peer": half_widths(peer), "fedmpi": half_widths(own)}
    apart = np.abs(means["peer"] - means["fedmpi"])
    found: dict[str, Any] = {
        program: {
            "mean": means[program].tolist(),
            "low": (means[program] - halves[program]).tolist(),
            "high": (means[program] + halves[program]).tolist(),
        }
        for program in means
    }
    found["own_in_peer_band"] = float(np.mean(apart <= halves["peer"]))
    found["peer_in_own_band"] = float(np.mean(apart <= halves["fedmpi"]))
    found["expected"] = _expected(len(peer))
    interval = ttest_ind(own[:, -1], peer[:, -1], equal_var=False).confidence_interval(0.95)
    difference = float(means["fedmpi"][-1] - means["peer"][-1])
    found["difference"] = {"mean": difference, "low": float(interval.low), "high": float(interval.high)}
    return found


def _expected(seeds: int) -> float:
    """Return the chance that a mean lies in another's band where both come from one normal distribution.

    The difference of two means has twice the variance of one, so it is sqrt(2) times a t variable of the
    band's own standard error.
    """
    from scipy.stats import t

    return float(1 - 2 * t.sf(t.ppf(0.975, seeds - 1) / np.sqrt(2), seeds - 1))


def _curves_statement(name: str, seeds: int, found: dict[str, Any]) -> str:
    finals = []
    for program in ("peer", "fedmpi"):
        mean, low, high = (100 * found[program][key][-1] for key in ("mean", "low", "high"))
        finals.append(f"{program} {mean:.2f} % ({low:.2f} to {high:.2f})")
    keys = ("own_in_peer_band", "peer_in_own_band", "expected")
    own, peer, expected = (f"{100 * found[key]:.0f} %" for key in keys)
    apart, least, most = (100 * value for value in found["difference"].values())
    return (
        f"{name}, {seeds} seeds: last round {', '.join(finals)}, difference {apart:.2f} points "
        f"({least:.2f} to {most:.2f}); fedmpi's mean is in the peer's 95 % band in {own} of the rounds, "
        f"the peer's in fedmpi's in {peer} (of equals {expected} are to be expected)"
    )
