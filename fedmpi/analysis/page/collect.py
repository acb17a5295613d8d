"""What the page keeps of each run, so that no more than one record is in memory at a time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.analysis import scores
from fedmpi.analysis.cells import without
from fedmpi.analysis.costs import by_name, by_round, by_step, is_imitated, joules_by_phase
from fedmpi.analysis.summary import summarise
from fedmpi.metrics import clients
from fedmpi.store.identical import rounds_digest
from fedmpi.store.reader import Run

Float = npt.NDArray[np.float64]

LOSSES = {"train_loss": "training loss", "test_loss": "test loss"}
"""Losses that are drawn by round, and what they are called."""

ALONE = "self-train"

_METHOD = ("objective", "model", "optimizer", "batch_size", "kernels")
"""Settings that belong to the method, as algorithm and rounds, where the objective may not use the labels."""


@dataclass(frozen=True)
class Holdings:
    """Who holds which classes: a run's partition.

    Attributes
    ----------
    mark : str
        The same for equal partitions.
    counts : int64 [n, classes]
        Graphs of each class.
    emd : float
        Mean distance of the clients' class shares from those of all graphs.
    """

    mark: str
    datasets: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    emd: float


@dataclass(frozen=True, kw_only=True)
class Digest(Run):
    """One run, in what the page shows of it; without its results, partition and attempts.

    Attributes
    ----------
    config : dict
        With `numerics_version`: runs of two versions are never averaged.
    values : dict of float64 [n] or [1]
        The headline of each client, or of the run, by selection rule.
    curves : dict of float64 [R]
        Metrics and losses by field; means over clients where each has a value.
    costs : dict of float64 [R]
        Spent up to each round: `seconds`, `megabytes` that all clients sent and received, `joules`, NaN
        where they were not counted, and `virtual`, the seconds of the devices, where there is such a clock.
    spent : dict of dict of float
        Over all rounds: `phases`, the seconds a rank spent in each on average; `secure`, those in each step
        of secure sums, empty without; `joules` of processors and memory by phase, over all nodes, empty
        without counters; `traffic`, MB of payload by collective, all ranks.
    """

    summary: dict[str, Any]
    values: dict[str, Float]
    curves: dict[str, Float]
    costs: dict[str, Float]
    spent: dict[str, dict[str, float]]
    holdings: Holdings | None
    provenance: dict[str, Any]
    rounds_digest: str
    """Of its models, losses and scores in all rounds."""
    redrawn: bool = False
    """Whether each of its repetitions has a partition of its own."""

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return self.folder.resolve().name

    def setting(self, *across: str) -> dict[str, Any]:
        """Return what it has in common with the runs that it is compared with, across further settings."""
        apart = ("suite", "name", "seed", "algorithm", "rounds", *across, *self._drawn)
        common = without(self.config, *apart, *(_METHOD if self._pooled else ()))
        return common | {"metric": self.headline.name}

    def repeated(self) -> dict[str, Any]:
        """Return what it has in common with its repetitions."""
        return without(self.config, "suite", "name", "seed", *self._drawn)

    @property
    def _pooled(self) -> bool:
        """Whether it is judged by all examples, whoever holds them."""
        return self.headline.scope == "all"

    @property
    def _drawn(self) -> tuple[str, ...]:
        """What its repetitions draw anew beside their seed."""
        return ("partition.seed",) if self.redrawn or self._pooled else ()


def digest(run: Run, target: float | None) -> Digest:
    """Return what the page keeps of a run."""
    config = run.config | {"rounds": run.rounds, "numerics_version": run.numerics_version}
    return Digest(
        **{**vars(run), "config": config, "results": {}, "partition": {}, "attempts": ()},
        summary=summarise(run, target),
        values={rule: scores.values(run, run.headline, rule) for rule in scores.rules(run.headline)},
        curves=_curves(run),
        costs=_costs(run),
        spent={
            "phases": by_name(run, "phase_seconds", lambda seconds: seconds.sum(axis=0).mean(axis=0)),
            "secure": by_step(run, "seconds", lambda rows: rows.sum(axis=0).mean()),
            "joules": joules_by_phase(run),
            "traffic": by_name(run, "collective_bytes", lambda sizes: sizes.sum(axis=(0, 1)) / 1e6),
        },
        holdings=_holdings(run),
        provenance=run.attempts[-1].provenance if run.attempts else {},
        rounds_digest=rounds_digest(run),
    )


def _curves(run: Run) -> dict[str, Float]:
    fields = [metric.field(part) for metric in run.metrics for part in metric.parts]
    return {
        name: clients.mean_by_round(run.results[name]) for name in (*fields, *LOSSES) if name in run.results
    }


def _costs(run: Run) -> dict[str, Float]:
    spent = by_round(run)
    joules = np.full(run.rounds_completed, np.nan) if spent.joules is None else spent.joules
    clock = {"virtual": run.results["virtual_clock"]} if "virtual_clock" in run.results else {}
    clock |= {"virtual": np.cumsum(spent.virtual_seconds)} if is_imitated(run) else {}
    return {
        **clock,
        "seconds": np.cumsum(spent.seconds),
        "megabytes": np.cumsum(spent.client_bytes) / 1e6,
        "joules": np.cumsum(joules),
    }


def _holdings(run: Run) -> Holdings | None:
    stored = run.partition
    if "class_counts" not in stored:
        return None
    counts = stored["class_counts"]
    mark = hashlib.sha256(counts.tobytes() + " ".join(stored["datasets"]).encode())
    for name in ("train_index", "val_index", "test_index"):
        mark.update(stored[name].tobytes() if name in stored else b"")
    return Holdings(mark.hexdigest(), tuple(stored["datasets"]), counts, float(stored["total_emd"]))
