"""How long a case will take: from its own record, from like ones, or from a stated model."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedmpi.case.schema import Case
from fedmpi.datasets.egos import EgoOptions
from fedmpi.datasets.features import known_width
from fedmpi.datasets.loading import sizes_of
from fedmpi.datasets.names import family_of
from fedmpi.datasets.tables import DatasetFacts
from fedmpi.errors import BadInput
from fedmpi.jobs.cases import Item, num_clients, pace
from fedmpi.jobs.systems import Model
from fedmpi.models.counts import GraphCounts
from fedmpi.models.options import Shape
from fedmpi.objectives.flops import ObjectiveFlops, ViewCounts
from fedmpi.registry.algorithms import ALGORITHMS
from fedmpi.store import runfile
from fedmpi.store.folders import runs_below
from fedmpi.store.reader import Run, load_run
from fedmpi.store.schema import canonical_json

_TRAIN_SHARE = 0.8
_USUAL_WIDTH = 51
"""Input features where these are degrees, and the largest is not known."""
_VIEW_EDGES = 5
"""Edges of a diffused view per edge of the graph, about, at the default threshold."""
_NO_MATTER = ("suite", "name", "seed", "rounds", "checkpoint_seconds", "link")
"""Settings on which the median seconds of a round hardly depend."""


@dataclass(frozen=True)
class Estimate:
    """Seconds that are left of a case (NaN: unknown), and what they are from."""

    seconds: float
    origin: str


class Paces:
    """Seconds per round by configuration: of the cases themselves and of earlier records.

    Cases are alike when they differ in suite, name, seed, rounds, checkpoints and link only. A pace
    measured on other ranks is scaled by the clients of the busiest rank.

    Raises
    ------
    BadInput
        There is no run in a folder of earlier records.
    """

    def __init__(self, items: Iterable[Item], earlier: Iterable[Path] = ()) -> None:
        self._alike: dict[str, list[tuple[float, int]]] = defaultdict(list)
        for item in items:
            if not math.isnan(item.pace):
                self._alike[_kind(item.case.config())].append((item.pace, item.ranks))
        for folder in earlier:
            found = sorted(runs_below(folder))
            if not found:
                raise BadInput(f"--records {folder}: no run ({runfile.NAME}) in it or below")
            for path in found:
                with suppress(BadInput):  # only an estimate hangs on it
                    self._take(load_run(path))

    def _take(self, run: Run) -> None:
        measured = pace(run)
        if run.attempts and not math.isnan(measured):
            self._alike[_kind(run.config)].append((measured, run.attempts[-1].ranks))

    def estimate(self, item: Item, ranks: int, model: Model) -> Estimate:
        """Return the seconds that are left of a case on so many ranks."""
        if item.done:
            return Estimate(0.0, "complete")
        left, case = item.case.rounds - item.rounds, item.case
        workers = min(_workers(case, ranks), num_clients(case))
        start = model.start_seconds + preparation_gflop(case) / workers / model.gflops
        own = not math.isnan(item.pace)
        measured = [(item.pace, item.ranks)] if own else self._alike.get(_kind(case.config()))
        if measured:
            origin = "record" if own else "like ones"
            paces = sorted(each * _load(case, ranks) / _load(case, then) for each, then in measured)
            return Estimate(start + left * paces[len(paces) // 2], origin)
        gflop = round_gflop(case)
        if math.isnan(gflop):
            return Estimate(math.nan, "unknown")
        per_round = model.round_seconds + gflop / workers / model.gflops
        return Estimate(start + left * per_round, "model")


def _kind(config: dict[str, Any]) -> str:
    return canonical_json({key: value for key, value in config.items() if key not in _NO_MATTER})


def _load(case: Case, ranks: int) -> int:
    """Return how many clients the busiest rank hosts."""
    return math.ceil(num_clients(case) / _workers(case, ranks))


def _workers(case: Case, ranks: int) -> int:
    """Return how many ranks may host clients."""
    return ranks if case.shared else max(1, ranks - 1)


def round_gflop(case: Case) -> float:
    """Return the 10^9 FLOP of a round of all participants; NaN where a size or a formula is not known."""
    facts = sizes_of(case.dataset)
    if not facts:
        return math.nan
    total = 0.0
    for one in facts:
        if not case.objective.supervised:
            total += _unsupervised(case, one)
            continue
        flops = case.model.flops(Shape(_width(case, one), one.classes))
        if flops is None:
            return math.nan
        trained, held_out = _parts(case, one)
        steps, others = ALGORITHMS.find(case.algorithm.name).passes(case.algorithm, case.local_epochs)
        train = steps * flops.training(trained).total + others * flops.forward(trained).total
        total += train * case.participation + flops.forward(held_out).total
    return total / 1e9


def preparation_gflop(case: Case) -> float:
    """Return about the 10^9 FLOP that all clients take before the first round."""
    facts = sizes_of(case.dataset)
    if not facts:
        return 0.0
    sizes = [(one.nodes, one.directed_edges, _width(case, one), one.classes) for one in facts]
    hook = ALGORITHMS.find(case.algorithm.name).preparation_flops
    return sum(hook(case.algorithm, *each) for each in sizes) / 1e9


def _parts(case: Case, facts: DatasetFacts) -> tuple[GraphCounts, GraphCounts]:
    """Return what training and evaluation work on: both on all of a graph whose nodes are examples."""
    egos, shares = case.dataset.egos, (_TRAIN_SHARE, 1 - _TRAIN_SHARE)
    if egos is not None:
        return _of_egos(egos, facts, shares[0]), _of_egos(egos, facts, shares[1])
    if family_of(facts.name).examples == "graph":
        return _counts(facts, shares[0]), _counts(facts, shares[1])
    examples = facts.nodes if family_of(facts.name).examples == "node" else facts.directed_edges // 2
    train, held_out = (int(share * examples) for share in shares)
    return replace(_counts(facts, 1.0), examples=train), replace(_counts(facts, 1.0), examples=held_out)


def _of_egos(egos: EgoOptions, facts: DatasetFacts, share: float) -> GraphCounts:
    """Return about what a share of the ego-networks holds.

    They are taken for trees of the mean degree, of twice the size where they overlap, since hubs are reached
    more often: CiteSeer's and DBLP's have 20 and 85 nodes so, and 19 and 84 in FedGraphNN's Table 8.
    """
    degree = facts.directed_edges / facts.nodes
    followed = min(degree, egos.neighbours or degree)
    size = min(float(facts.nodes), sum(followed**hop for hop in range(egos.hops + 1)))
    number = min(egos.number * (facts.classes if egos.by == "label" else 1), facts.nodes)
    honest = egos.protocol == "honest"
    graphs = share * (min(number, facts.nodes / size) if honest else number)
    nodes = graphs * (size if honest else min(2 * size, facts.nodes))
    return GraphCounts(
        int(graphs), int(nodes), int(nodes * degree), examples=int(graphs if honest else nodes)
    )


def _unsupervised(case: Case, facts: DatasetFacts) -> float:
    """Return the FLOP of a round in which everybody trains on all graphs."""
    flops: ObjectiveFlops | None = case.objective.flops(case.model, Shape(_width(case, facts), facts.classes))
    if flops is None:
        return math.nan
    counts = _counts(facts, 1.0)
    views = (
        ViewCounts(replace(counts, graphs=case.batch_size), weighted=False),
        ViewCounts(replace(counts, edges=_VIEW_EDGES * counts.edges), weighted=True),
    )
    train = flops.step(*views, executed=True).total * case.local_epochs * case.participation
    copies = flops.copies(case.local_epochs)
    if copies:
        train += flops.encoding(views[0], executed=True).total * copies * case.participation
    return train + flops.vectors(*views, executed=True).total


def _counts(facts: DatasetFacts, share: float) -> GraphCounts:
    return GraphCounts(*(int(share * count) for count in (facts.graphs, facts.nodes, facts.directed_edges)))


def _width(case: Case, facts: DatasetFacts) -> int:
    """Return about the number of input features."""
    return known_width(facts, case.dataset.features) or _USUAL_WIDTH
