"""Rows of a made-up track, with leads that are planted: what the page says of them is known."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping

from fedmpi.analysis.leaderboard.rows import FINAL, TUNING, Constant, Row
from fedmpi.analysis.leaderboard.track import SEEDS, Track, tuned_text

SUITE = """
name = "demo/planted"
draws = 3
where = [{ when = {}, draw = { optimizer = { lr = { log-uniform = [1e-3, 1.0] } } } }]
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 60 } }
[matrix]
data = [{ label = "A", batch_size = 8 }, { label = "B", batch_size = 16 }]
how = [
    { label = "iid10", partition = { name = "iid", clients = 10 } },
    { label = "iid30", partition = { name = "iid", clients = 30 } },
    { label = "dirichlet0.1", partition = { name = "dirichlet-label", clients = 10, alpha = 0.1 } },
    { label = "scaffold5", partition = { name = "metadata", by = "scaffold", clients = 5 } },
]
algorithm = ["fedavg", "self-train", "fedprox", "ditto", "fedper"]
seed = [
    { label = "seed201", seed = 201, partition = { seed = 201 } },
    { label = "seed202", seed = 202, partition = { seed = 202 } },
]
"""
"""Eight federations of three kinds, five methods, three candidates on two tuning seeds."""


def row(
    track: str, data: str, method: str, seed: int, test: float, stage: str = FINAL, **other: object
) -> Row:
    """Return a row whose costs are all 1,000 unless told otherwise; NaN is a run that has diverged."""
    values: dict[str, object] = {"settings": "", "commit": "", "metric": "accuracy", "best_round": 1}
    values |= dict.fromkeys(("config_digest", "results_digest"), "0" * 64)
    values |= dict.fromkeys(("bytes_per_client", "model_gflop", "cpu_seconds"), 1000.0)
    values |= dict.fromkeys(("target", "rounds_to_target", "cpu_seconds_to_target"), math.nan)
    values |= {"case": f"{data}-{method}-seed{seed}", "clients": 2, "numerics_version": 2, "val": test}
    values |= {"status": "diverged" if math.isnan(test) else "complete"} | other
    return Row(track=track, data=data, method=method, stage=stage, seed=seed, test=test, **values)


def rows(found: Track, points: Mapping[str, float], noise: float = 0.3) -> list[Row]:
    """Return all rows of a track: scores of 0.7 plus each method's planted points, with noise by seed.

    Self-train has 10 points more than planted on Dirichlet shares.
    """
    return list(_rows(found, points, random.Random(1), noise))


def _rows(found: Track, points: Mapping[str, float], drawn: random.Random, noise: float) -> Iterator[Row]:
    for (data, method), cases in found.candidates.items():
        more = 10.0 if method == "self-train" and "dirichlet" in data else 0.0
        mean = 70 + points[method] + more + drawn.gauss(0, noise)
        for case in cases:
            score = (mean - 10 * (int(case.name[-1]) - 1)) / 100  # by the candidate's number
            seed = case.settings["seed"]
            tuned = tuned_text(case.settings, cases)
            yield row(found.name, data, method, seed, score, TUNING, case=case.name, settings=tuned)
        for seed in SEEDS:
            score = (mean + drawn.gauss(0, noise)) / 100
            spent = {"rounds_to_target": 5.0, "cpu_seconds_to_target": 2.0 if method == "ditto" else 1.0}
            spent |= {"target": 0.6, "gflop_to_target": 3.0, "bytes_to_target": 4.0}
            yield row(found.name, data, method, seed, score, worst_decile=score - 0.2, **spent)


def constants(found: Track, score: float = 0.5) -> list[Constant]:
    """Return the constants of all federations."""
    pairs = [(data, seed) for data in found.federations for seed in SEEDS]
    return [Constant(found.name, data, seed, "accuracy", score) for data, seed in pairs]
