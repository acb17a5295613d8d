"""Whether peer and engine learn the same: their mean accuracy curves over several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.benchmarks.peers import Pair
from fedmpi.benchmarks.samples import Measurement, Report, Samples
from fedmpi.comm.world import World
from fedmpi.datasets.source import DataSource
from fedmpi.judging.estimates import half_widths
from fedmpi.registry.check import Checked

Floats = npt.NDArray[np.float64]


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
        curves = [_curves(_with_seed(checked, seed), source, world, rounds) for seed in seeds]
        tables = {program: np.array([each[program] for each in curves]) for program in ("peer", "fedmpi")}
        for program, table in tables.items():
            for seed, curve in zip(seeds, table, strict=True):
                labels: dict[str, str | int] = {"setting": name, "program": program, "seed": seed}
                measurements.append(Measurement(labels, {"test_accuracy": Samples.of("1", curve)}))
        results[name] = compare_curves(tables["peer"], tables["fedmpi"])
        statements.append(_statement(name, len(seeds), results[name]))
    settings = {"settings": [c.case.name for c in cases], "rounds": rounds, "seeds": list(seeds)}
    return Report("peers-accuracy", settings, measurements, results, statements)


def _with_seed(checked: Checked, seed: int) -> Checked:
    return Checked(checked.case.model_copy(update={"seed": seed}), checked.algorithm)


def _curves(checked: Checked, source: DataSource, world: World, rounds: int) -> dict[str, list[float]]:
    """Return the accuracy of each round of both programs."""
    pair = Pair(checked, source, world)

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


def _statement(name: str, seeds: int, found: dict[str, Any]) -> str:
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
