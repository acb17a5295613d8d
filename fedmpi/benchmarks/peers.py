"""The same rounds here and in a peer, ``bench/peers/`` in plain PyTorch Geometric."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from fedmpi.benchmarks.federation import Prepared, deterministic, prepare
from fedmpi.benchmarks.machine import times
from fedmpi.benchmarks.samples import Measurement, Report, Samples, against_peer, figures_of, in_turn
from fedmpi.comm.world import World
from fedmpi.config import locations
from fedmpi.datasets.source import DataSource
from fedmpi.registry.check import Checked
from fedmpi.runs.reporting import RoundReport
from fedmpi.runs.signals import StopRequest

SUITES = ("peers/fedavg", "peers/networks")


def load_reference(name: str = "reference") -> ModuleType:
    """Import a peer's script, which lies among the suites: ``reference`` for graphs, or ``networks``."""
    path = locations.find(SUITES[0]).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"fedmpi_peer_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Pair:
    """A case in the engine, and the peer on the same graphs of the same clients."""

    def __init__(self, checked: Checked, source: DataSource, world: World) -> None:
        self.prepared: Prepared = prepare(checked, source, world)
        case = self.prepared.case
        raws, partition = self.prepared.raws, self.prepared.partition
        if raws[0].examples == "graph":
            self.peer = load_reference().federation(raws, partition, case.seed, self.prepared.device)
        else:
            self.peer = load_reference("networks").federation(raws, partition, case)
        self._stop = StopRequest()
        self._round = 0

    def peer_round(self) -> None:
        """Run a round of the peer, with torch as a user finds it."""
        with deterministic(False):
            self.peer.round()

    def own_round(self) -> RoundReport:
        """Run a round of the engine: everything but record and checkpoint."""
        with deterministic(True):
            _, report = self.prepared.rounds.run(self._round, stop=self._stop, checkpoint=False)
        self._round += 1
        assert report is not None
        return report


def compare_times(
    cases: Sequence[Checked], source: DataSource, world: World, repetitions: int, warmup: int
) -> Report:
    """Time rounds of peer and engine in turn, case by case.

    Parameters
    ----------
    cases : sequence of Checked
    source : DataSource
    world : World
    repetitions, warmup : int
        Measured pairs of rounds, and pairs before them that do not count.

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
        peer, own = times_in_turn(Pair(checked, source, world), repetitions, warmup)
        found, results[name] = against_peer({"setting": name}, peer, own)
        measurements += found
        statements.append(_statement(name, peer, own, results[name]))
    settings = {"settings": [c.case.name for c in cases], "repetitions": repetitions, "warmup": warmup}
    return Report("peers", settings, measurements, results, statements)


def times_in_turn(pair: Pair, repetitions: int, warmup: int) -> tuple[dict[str, Samples], dict[str, Samples]]:
    """Return wall-clock and CPU seconds of peer and engine, a round of each in turn."""
    device = pair.prepared.device
    turns = {
        "peer": lambda turn: times(pair.peer_round, device),
        "fedmpi": lambda turn: times(pair.own_round, device),
    }
    peer, own = (figures_of(rows) for rows in in_turn(turns, warmup, repetitions).values())
    return peer, own


def _statement(
    name: str, peer: dict[str, Samples], own: dict[str, Samples], found: dict[str, dict[str, float]]
) -> str:
    parts = [
        f"{key.split('_')[0]} {each['median']:.2f}x (95 %: {each['low']:.2f} to {each['high']:.2f})"
        for key, each in found.items()
    ]
    times = [1e3 * each["wall_seconds"].median for each in (peer, own)]
    return f"{name}: peer / fedmpi {', '.join(parts)}; {times[0]:.1f} and {times[1]:.1f} ms a round"
