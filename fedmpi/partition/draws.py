"""How the graphs of one dataset are dealt out to clients: one function per kind of partition.

Each returns one int64 array of graph numbers per client, a pure function of options and labels.
"""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import RawGraphs
from fedmpi.errors import BadInput
from fedmpi.partition.options import Chunks, DirichletLabel, DirichletQuantity, DominantShare, Iid, Metadata
from fedmpi.seeds import Purpose, generator, key, permutation

Int = npt.NDArray[np.int64]

_BLOCK = 50
_MAX_DRAWS = 1000


def chunks(options: Chunks, labels: Int) -> list[Int]:
    """Deal as GCFL's released code: blocks in file order, then each graph left to a random client.

    The draws are those of NumPy's legacy generator, one ``randint`` per graph left, so that the
    published client sizes come out. The overlap option draws sizes by the same generator and
    graphs, with replacement, by Python's `random.choices`.
    """
    num_graphs, clients = len(labels), options.clients
    _enough(num_graphs, clients)
    legacy = np.random.RandomState(options.seed)
    if options.overlap:
        plain = random.Random(options.seed)
        sizes = legacy.randint(50, 150, clients)
        return [np.array(plain.choices(range(num_graphs), k=int(size)), np.int64) for size in sizes]
    block = min(_BLOCK, num_graphs // clients)
    held = [list(range(client * block, (client + 1) * block)) for client in range(clients)]
    for graph in range(clients * block, num_graphs):
        held[int(legacy.randint(low=0, high=clients, size=1)[0])].append(graph)
    return [np.array(graphs, np.int64) for graphs in held]


def iid(options: Iid, labels: Int) -> list[Int]:
    """Deal a random order out in equal shares; sizes differ by one at most."""
    _enough(len(labels), options.clients)
    order = permutation(key(options.seed, Purpose.PARTITION), len(labels))
    return [np.sort(part) for part in np.array_split(order, options.clients)]


def dirichlet_label(options: DirichletLabel, labels: Int) -> list[Int]:
    """Deal each class out in shares ~ Dirichlet(alpha), as Hsu et al. (2019) and NIID-Bench."""
    groups = [np.flatnonzero(labels == value) for value in range(int(labels.max()) + 1)]
    return _until_enough(options, len(labels), groups)


def dirichlet_quantity(options: DirichletQuantity, labels: Int) -> list[Int]:
    """Deal the whole dataset out in shares ~ Dirichlet(alpha); classes fall as they fall."""
    return _until_enough(options, len(labels), [np.arange(len(labels))])


def metadata(options: Metadata, raw: RawGraphs, classes: Int) -> list[Int]:
    """Deal the values of a piece of metadata out in runs of a random order, as FedGraphNN's categories."""
    values = _metadata(options.by, raw, classes)
    known = np.unique(values)
    if options.clients > len(known):
        raise BadInput(
            f'{options.clients} clients cannot share {len(known)} values of partition.by = "{options.by}": '
            "use fewer clients"
        )
    order = known[permutation(key(options.seed, Purpose.PARTITION), len(known))]
    return [np.flatnonzero(np.isin(values, run)) for run in np.array_split(order, options.clients)]


def _metadata(by: str, raw: RawGraphs, classes: Int) -> Int:
    if by == "scaffold" and raw.scaffolds is not None:
        return np.asarray(raw.scaffolds)
    if by == "category" and raw.examples == "edge" and raw.places is not None:
        return np.searchsorted(raw.topology.graph_ptr, np.asarray(raw.places)[:, 0], side="right")
    if by == "class" and raw.task == "classification":
        return classes
    raise BadInput(f'partition.by = "{by}": {raw.name} has no such metadata')


def dominant_share(options: DominantShare, labels: Int) -> list[Int]:
    """Deal each class mostly to its own clients, so that FCLG's published EMDs come out.

    Of class j's n_j graphs ``floor(share n_j)`` go to clients j K/C to (j + 1) K/C - 1, the others
    to the clients after these, in circular order; both in equal shares, the larger ones first. The
    paper (Li, Agrawal, Ramnath and Jin 2024) states only the EMDs; this rule gives all eight.
    """
    num_classes = int(labels.max()) + 1
    if options.clients % num_classes:
        raise BadInput(
            f"partition 'dominant-share' gives each of the {num_classes} classes equally many clients: "
            f"clients = {options.clients} is no multiple of {num_classes}"
        )
    home = options.clients // num_classes
    held: list[list[Int]] = [[] for _ in range(options.clients)]
    for label in range(num_classes):
        graphs = np.flatnonzero(labels == label)
        graphs = graphs[permutation(key(options.seed, Purpose.PARTITION, label), len(graphs))]
        share = _exact(options.share, num_classes) if num_classes > 1 else 1  # at home everywhere
        cut = int(share * len(graphs))
        order = np.roll(np.arange(options.clients), -label * home)
        for clients, part in ((order[:home], graphs[:cut]), (order[home:], graphs[cut:])):
            for client, piece in zip(clients, np.array_split(part, max(1, len(clients))), strict=False):
                held[client].append(piece)
    return [np.sort(np.concatenate(parts)) for parts in held]


def _exact(share: float | str, num_classes: int) -> Fraction:
    """Return the share as it is written: 0.7 of 10 graphs are 7."""
    return Fraction(1, num_classes) if isinstance(share, str) else Fraction(str(share))


def _until_enough(
    options: DirichletLabel | DirichletQuantity, num_graphs: int, groups: list[Int]
) -> list[Int]:
    """Deal every group out by shares of its own; draw again until every client has enough graphs."""
    if options.clients * options.min_graphs > num_graphs:
        raise BadInput(
            f"{options.clients} clients of at least {options.min_graphs} graphs need more than the "
            f"{num_graphs} there are: use fewer clients or a smaller min_graphs"
        )
    for attempt in range(_MAX_DRAWS):
        rng = generator(key(options.seed, Purpose.PARTITION, attempt))
        held: list[list[Int]] = [[] for _ in range(options.clients)]
        for group in groups:
            shares = rng.dirichlet(np.full(options.clients, options.alpha))
            cuts = np.floor(np.cumsum(shares)[:-1] * len(group)).astype(np.int64)
            for client, part in enumerate(np.split(rng.permutation(group), cuts)):
                held[client].append(part)
        dealt = [np.sort(np.concatenate(parts)) for parts in held]
        if min(len(graphs) for graphs in dealt) >= options.min_graphs:
            return dealt
    raise BadInput(
        f"no draw of {_MAX_DRAWS} gave each of {options.clients} clients {options.min_graphs} graphs at "
        f"alpha {options.alpha:g}: use a larger alpha, fewer clients or a smaller min_graphs"
    )


def _enough(num_graphs: int, clients: int) -> None:
    if clients > num_graphs:
        raise BadInput(f"{clients} clients cannot share {num_graphs} examples: use fewer clients")
