"""What scaling needs of each run: a round's median times, work and messages at one number of ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.analysis.cells import key
from fedmpi.analysis.scores import is_together
from fedmpi.analysis.stored import system
from fedmpi.analysis.summary import setting
from fedmpi.store.reader import AttemptRecord, Run
from fedmpi.store.schema import Array

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

_APART = ("suite", "name", "checkpoint_seconds", "rounds", "numerics_version")
_OF_CLIENTS = ("steps", "samples", "model_flops", "evaluation_flops")
"""Results that are 0 in a record without values of single clients, where they are not known."""

_SIZES = ("seed", "partition.clients", "dataset.synthetic.graphs", "dataset.synthetic.domains")


@dataclass(frozen=True)
class Messages:
    """One collective in a round: calls, bytes, seconds without waiting.

    The bytes are the largest payload of a rank; where rank 0 has a message of its own from each rank or to
    each (`_BY_RANK`), all payloads together. The seconds are those of the rank that spends least in it: the
    others also wait for that one. Of a message from rank 0 (`_FROM_ROOT`) those of the others: rank 0 is
    through once the data are on their way.
    """

    calls: float
    size: float
    seconds: float


@dataclass(frozen=True)
class Work:
    """What a round computes, by client: steps, FLOPs of training and evaluation, training seconds.

    NaN where the record has no values of single clients.
    """

    steps: Float
    train_flops: Float
    evaluate_flops: Float
    seconds: Float


@dataclass(frozen=True)
class Point:
    """One run: medians over the rounds of its longest attempt, the first round left out where there are more.

    Attributes
    ----------
    ranks, workers : int
        All ranks, and those that may host clients: one less where rank 0 hosts none.
    placement : int64 [n]
        Rank of each client.
    round_seconds : float64 [R]
    evaluate : float64 [ranks]
        Seconds of evaluation.
    server, record : float
        Seconds of rank 0.
    collectives : dict
        By name; only those that were called, and not the barriers in which ranks wait for each other.
    cores : int
        Cores of the ranks' hosts together, as far as known; 0 if not.
    rates : dict
        Per second of wall-clock time: rounds, client updates, training graphs, model GFLOP.
    system : str
        Processor, MPI library and device; not the hosts, of which one system has many.
    """

    folder: Path
    config: Mapping[str, Any]
    clients: int
    ranks: int
    placement: Int
    round_seconds: Float
    work: Work
    evaluate: Float
    server: float
    record: float
    collectives: Mapping[str, Messages]
    cores: int
    rates: Mapping[str, float]
    started: str
    ended: str
    system: str

    @property
    def workers(self) -> int:
        """Ranks that may host clients: all where rank 0 does."""
        return self.ranks if self.ranks == 1 or self.shared else self.ranks - 1

    @property
    def shared(self) -> bool:
        """Whether rank 0 hosts clients beside others."""
        return self.ranks > 1 and 0 in self.placement

    @property
    def seconds(self) -> float:
        """Median seconds of a round."""
        return float(np.median(self.round_seconds))

    @property
    def case(self) -> str:
        """Marks runs that do the same work on any number of ranks."""
        return key(self.config, *_APART, "seed") + " shared" * self.shared

    @property
    def kind(self) -> str:
        """Marks runs that differ in the number of clients and the amount of data only."""
        return key(self.config, *_APART, *_SIZES) + " shared" * self.shared

    @property
    def title(self) -> str:
        """Algorithm, dataset and clients, for people."""
        names = f"{setting(self.config, 'algorithm')} on {setting(self.config, 'dataset')}"
        return f"{names}, {self.clients} clients"

    @property
    def crowded(self) -> bool:
        """Whether there were more ranks than cores, so that times are those of the scheduler."""
        return 0 < self.cores < self.ranks


def point(run: Run) -> Point | None:
    """Return what scaling needs of a run; None if it has no round."""
    longest = max(run.kept_rounds(), key=lambda pair: len(pair[1]), default=None)
    if longest is None or not len(longest[1]):
        return None
    attempt, kept = longest
    rows = kept[1:] if len(kept) > 1 else kept
    results = {name: values[rows + attempt.first_round] for name, values in run.results.items()}
    measured = {name: values[rows] for name, values in attempt.measurements.items()}
    if is_together(run.config):
        results |= {name: np.full(results[name].shape, np.nan) for name in _OF_CLIENTS}
    phases = {name: measured["phase_seconds"][:, :, place] for place, name in enumerate(attempt.phases)}
    provenance = attempt.provenance
    placed = provenance.get("rank_of_client", [attempt.ranks - 1] * len(run.clients))
    return Point(
        folder=run.folder,
        config=run.config,
        clients=len(run.clients),
        ranks=attempt.ranks,
        placement=np.asarray(placed, np.int64),
        round_seconds=np.asarray(measured["round_seconds"], np.float64),
        work=_work(results, measured),
        evaluate=np.median(phases["evaluate"], axis=0),
        server=float(np.median(phases["server"][:, 0])),
        record=float(np.median(phases["record"][:, 0])),
        collectives=_messages(attempt, measured),
        cores=_cores(provenance),
        rates=_rates(results, measured),
        started=attempt.started,
        ended=attempt.ended,
        system=", ".join(system(provenance)[name] for name in ("processor", "MPI", "device")),
    )


def _work(results: Mapping[str, Array], measured: Mapping[str, Array]) -> Work:
    """Return the mean work per round: with sampled clients, a client's share of the rounds counts."""
    seconds = measured["client_wall_seconds"]
    trained = ~np.isnan(seconds).all(axis=0)
    medians = np.zeros(seconds.shape[1])
    medians[trained] = np.nanmedian(seconds[:, trained], axis=0)
    names = ("steps", "model_flops", "evaluation_flops")
    steps, training, evaluation = (np.asarray(results[name].mean(axis=0), np.float64) for name in names)
    return Work(steps, training, evaluation, medians)


_BY_RANK = ("Gatherv", "Scatterv")
_FROM_ROOT = ("Bcast", "Scatterv")


def _messages(attempt: AttemptRecord, measured: Mapping[str, Array]) -> dict[str, Messages]:
    found = {}
    for place, name in enumerate(attempt.collectives):
        names = [f"collective_{kind}" for kind in ("calls", "bytes", "seconds")]
        calls, sizes, seconds = (measured[each][:, :, place] for each in names)
        if calls.any() and not name.endswith("arrier"):
            payload = sizes.sum(axis=1) if name in _BY_RANK else sizes.max(axis=1)
            others = seconds[:, 1:] if name in _FROM_ROOT and seconds.shape[1] > 1 else seconds
            waitless = float(np.median(others.min(axis=1)))
            found[name] = Messages(float(calls.max(axis=1).mean()), float(payload.mean()), waitless)
    return found


def _rates(results: Mapping[str, Array], measured: Mapping[str, Array]) -> dict[str, float]:
    seconds = float(np.sum(measured["round_seconds"]))
    if not seconds:
        return {}
    amounts = {
        "rounds": float(len(measured["round_seconds"])),
        "updates": float(results["participated"].sum()),
        "graphs": float(results["samples"].sum()),
        "gflop": float(results["model_flops"].sum()) / 1e9,
    }
    return {name: amount / seconds for name, amount in amounts.items()}


def _cores(provenance: Mapping[str, Any]) -> int:
    """Return the cores that the ranks may use, over all hosts; 0 if the record does not say."""
    found: dict[str, set[int]] = {}
    for rank in provenance.get("mpi", {}).get("ranks", []):
        found.setdefault(str(rank.get("host")), set()).update(rank.get("cores", []))
    return sum(map(len, found.values()))
