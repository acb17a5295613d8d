"""A model of a round's time: computing by steps and FLOPs, collectives by latency and bandwidth.

A client's training takes ``a`` seconds per step and ``b`` per FLOP; its evaluation ``c`` seconds and ``d``
per FLOP. A call of a collective among P ranks takes ``alpha * ceil(log2 P)`` seconds and ``beta`` per byte
(Thakur, Rabenseifner and Gropp 2005, for trees): of the largest payload of a rank, and of all payloads
together where rank 0 gathers or scatters, because they cross its link one after another. All are fitted
by least squares with no coefficient below 0. A round takes the busiest rank's training and evaluation, the
collectives, the server's work, and a remainder: one of a rank alone, one that is the same for every larger
number of ranks. Rank 0 records a round while the others train the next, so recording counts where there is
one rank, or where it takes longer than training.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedmpi.analysis.scaling.points import Float, Int, Point
from fedmpi.comm.placement import place


@dataclass(frozen=True)
class Network:
    """One collective: seconds per level of a tree and per byte, and how many samples these come from."""

    latency: float
    per_byte: float
    samples: int

    def seconds(self, ranks: int, calls: float, size: float) -> float:
        """Return the seconds of a round's calls."""
        return self.latency * calls * _levels(ranks) + self.per_byte * size


@dataclass(frozen=True)
class Traffic:
    """Calls of a collective in a round, and payload as ``fixed + by_rank * P`` bytes."""

    calls: float
    fixed: float
    by_rank: float


@dataclass(frozen=True)
class Model:
    """The fitted model of one case.

    Attributes
    ----------
    step, flop : float
        Seconds of training per optimizer step and per FLOP.
    client, evaluated_flop : float
        Seconds of evaluation per client and per FLOP.
    networks, traffic : mapping
        By collective.
    traffic_alone : mapping
        The same with one worker, which keeps the shared model; empty where no run tells it.
    server, record : float
        Seconds of a round.
    rest_alone, rest : float
        What a round takes beyond that, on one rank and on more.
    """

    step: float
    flop: float
    client: float
    evaluated_flop: float
    networks: Mapping[str, Network]
    traffic: Mapping[str, Traffic]
    traffic_alone: Mapping[str, Traffic]
    server: float
    record: float
    rest_alone: float
    rest: float

    def seconds(self, like: Point, ranks: int) -> float:
        """Return the predicted seconds of a round of `like`'s case on so many ranks."""
        return sum(self.parts(like, ranks).values())

    def parts(self, like: Point, ranks: int) -> dict[str, float]:
        """Return what these seconds are made of."""
        placed = placement(like, ranks)
        train, evaluate = self._of_clients(like)
        training = float(np.bincount(placed, train).max())
        return {
            "the busiest rank": training + float(np.bincount(placed, evaluate).max()),
            "collectives": self.communication(like, ranks),
            "the server": self.server + (self.record if ranks == 1 else max(0.0, self.record - training)),
            "the rest": self.rest_alone if ranks == 1 else self.rest,
        }

    def workers_of_use(self, like: Point) -> float:
        """Return all clients' work over that of the heaviest: more ranks than that cannot help."""
        train, evaluate = self._of_clients(like)
        return float((train + evaluate).sum() / (train + evaluate).max())

    def _of_clients(self, like: Point) -> tuple[Float, Float]:
        """Return each client's seconds of training and of evaluation."""
        work = like.work
        train = self.step * work.steps + self.flop * work.train_flops
        return train, self.client + self.evaluated_flop * work.evaluate_flops

    def communication(self, like: Point, ranks: int) -> float:
        """Return the seconds of a round's collectives; none among one rank."""
        if ranks == 1:
            return 0.0
        traffic = self.traffic_alone if _has_one_worker(like, ranks) and self.traffic_alone else self.traffic
        sizes = {name: each.fixed + each.by_rank * ranks for name, each in traffic.items()}
        return sum(self.networks[name].seconds(ranks, traffic[name].calls, sizes[name]) for name in traffic)


def _has_one_worker(like: Point, ranks: int) -> bool:
    """Return whether one rank has all clients, and another one is the server."""
    return ranks == 2 and not like.shared


def placement(like: Point, ranks: int) -> Int:
    """Return the rank of each client on so many ranks, as fedmpi would place them."""
    if ranks == like.ranks and like.placement.any():
        return like.placement
    costs = np.rint(np.nan_to_num(like.work.train_flops + like.work.evaluate_flops)).astype(np.int64)
    return place(costs.tolist(), [*range(1, ranks), *([0] if ranks == 1 or like.shared else [])])


def fit(points: Sequence[Point], everywhere: Sequence[Point]) -> Model:
    """Fit the model of one case.

    Parameters
    ----------
    points : sequence of Point
        Runs of the case, one at least.
    everywhere : sequence of Point
        All runs on the machine: the network is the same for every case.
    """
    step, flop = _coefficients(
        np.concatenate([np.column_stack([p.work.steps, p.work.train_flops]) for p in points]),
        np.concatenate([p.work.seconds for p in points]),
    )
    client, evaluated = _coefficients(*_evaluations(points))
    server, record = (float(np.median([getattr(p, name) for p in points])) for name in ("server", "record"))
    networks = _networks([p for p in everywhere if p.ranks > 1])
    traffic = _traffic(_several(points) or _several(everywhere))
    alone_traffic = _traffic([p for p in points if _has_one_worker(p, p.ranks)])
    bare = Model(step, flop, client, evaluated, networks, traffic, alone_traffic, server, record, 0.0, 0.0)
    beyond = [(p.ranks == 1, p.seconds - bare.seconds(p, p.ranks)) for p in points]
    alone, several = ([value for one, value in beyond if one == wanted] for wanted in (True, False))
    rests = [max(0.0, float(np.median(values or several or alone))) for values in (alone, several)]
    return replace(bare, rest_alone=rests[0], rest=rests[1])


def _coefficients(amounts: Float, seconds: Float) -> list[float]:
    """Return the coefficients of amounts [samples, k], not below 0, that explain seconds best; NaN of NaN."""
    from scipy.optimize import nnls

    if np.isnan(amounts).any():
        return [math.nan] * amounts.shape[1]
    scales = np.where(amounts.max(axis=0) > 0, amounts.max(axis=0), 1.0)
    found, _ = nnls(amounts / scales, seconds)
    return list(map(float, found / scales))


def _evaluations(points: Sequence[Point]) -> tuple[Float, Float]:
    """Return clients and FLOPs of every rank that evaluates, and its seconds."""
    amounts, seconds = [], []
    for each in points:
        placed = placement(each, each.ranks)
        counts = np.bincount(placed, minlength=each.ranks)
        flops = np.bincount(placed, each.work.evaluate_flops, minlength=each.ranks)
        busy = counts > 0
        amounts.append(np.column_stack([counts, flops])[busy].astype(np.float64))
        seconds.append(each.evaluate[busy])
    return np.concatenate(amounts), np.concatenate(seconds)


def _networks(points: Sequence[Point]) -> dict[str, Network]:
    """Return each collective's latency, and one time per byte: all of them cross the same links.

    A collective of small messages alone would take its waits for transfer.
    """
    names = list(dict.fromkeys(name for each in points for name in each.collectives))
    sampled = [(each.ranks, name, found) for each in points for name, found in each.collectives.items()]
    if not sampled:
        return {}
    amounts = np.zeros((len(sampled), len(names) + 1))
    for row, (ranks, name, messages) in zip(amounts, sampled, strict=True):
        row[names.index(name)], row[-1] = messages.calls * _levels(ranks), messages.size
    seconds = np.array([messages.seconds for *_, messages in sampled])
    *latencies, per_byte = _coefficients(amounts, seconds)
    counts = Counter(name for _, name, _ in sampled)
    return {name: Network(each, per_byte, counts[name]) for name, each in zip(names, latencies, strict=True)}


def _several(points: Sequence[Point]) -> list[Point]:
    """Return the runs with more than one worker, or else with one: that one keeps the shared model."""
    return [p for p in points if p.workers > 1] or [p for p in points if p.ranks > 1]


def _traffic(points: Sequence[Point]) -> dict[str, Traffic]:
    """Return calls and payload of each collective by the number of ranks."""
    found = {}
    for name in dict.fromkeys(name for each in points for name in each.collectives):
        sampled = [(each.ranks, each.collectives[name]) for each in points if name in each.collectives]
        ranks = np.array([ranks for ranks, _ in sampled], np.float64)
        sizes = np.array([messages.size for _, messages in sampled])
        fixed, by_rank = float(sizes.mean()), 0.0
        if len(np.unique(ranks)) > 1:
            fixed, by_rank = _coefficients(np.column_stack([np.ones(len(ranks)), ranks]), sizes)
        found[name] = Traffic(float(np.mean([m.calls for _, m in sampled])), fixed, by_rank)
    return found


def _levels(ranks: int) -> int:
    return math.ceil(math.log2(ranks)) if ranks > 1 else 0


def held_out(points: Sequence[Point], everywhere: Sequence[Point], ranks: int) -> float | None:
    """Return the prediction for `ranks` by a fit without any run on so many; None where too few are left.

    Runs on two other numbers of ranks are needed, one of them more than one; and no others tell what travels
    between one worker and the server.
    """
    others = [each for each in points if each.ranks != ranks]
    if any(_has_one_worker(each, ranks) for each in others):
        return None
    if len({each.ranks for each in others}) < 2 or (ranks > 1 and all(each.ranks == 1 for each in others)):
        return None
    elsewhere = [each for each in everywhere if each.ranks != ranks]
    return fit(others, elsewhere).seconds(others[0], ranks)
