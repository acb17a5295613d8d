"""A population of clients, far more than take part in a round, whose graphs are drawn when they are sampled.

The record's clients are the places of a round: place i holds the i-th of the round's clients, by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.datasets.raw import RawGraphs, strata
from fedmpi.errors import BadInput
from fedmpi.partition.options import PopulationOptions
from fedmpi.partition.splits import split
from fedmpi.seeds import Purpose, generator, key, permutation, words

Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Population:
    """Clients by number, and what each of them trains on.

    Attributes
    ----------
    size : int
        Number of clients.
    graphs : int
        Training graphs of each.
    alpha : float or None
        Of the Dirichlet distribution of their classes; None: classes as in the pool.
    seed : int
        Split seed.
    pool : int64 [P]
        Training graphs of the dataset, from which clients draw with replacement.
    by_class : tuple of int64 arrays
        Places in the pool of the graphs of each class that is there.
    """

    size: int
    graphs: int
    alpha: float | None
    seed: int
    pool: Int
    by_class: tuple[Int, ...]

    def sampled(self, seed: int, round: int, count: int) -> Int:
        """Return the clients of a round, int64 [count], ascending: a sample without replacement."""
        stream = key(seed, Purpose.PARTICIPATION, round)
        if 2 * count > self.size:
            return np.sort(permutation(stream, self.size)[:count])
        drawn, found = count, np.zeros(0, np.int64)
        while len(found) < count:
            drawn *= 2
            numbers, first = np.unique(words(stream, drawn) % np.uint64(self.size), return_index=True)
            found = numbers[np.argsort(first)][:count].astype(np.int64)
        return np.sort(found)

    def drawn(self, client: int) -> Int:
        """Return the places in the pool of a client's training graphs, int64 [graphs]."""
        stream = key(self.seed, Purpose.PARTITION, client)
        if self.alpha is None:
            return (words(stream, self.graphs) % np.uint64(len(self.pool))).astype(np.int64)
        source = generator(stream)
        share = np.array([len(places) for places in self.by_class]) / len(self.pool)
        of_class = source.multinomial(self.graphs, source.dirichlet(self.alpha * share))
        return np.concatenate(
            [
                places[source.integers(len(places), size=n)]
                for places, n in zip(self.by_class, of_class, strict=True)
            ]
        )


def places(
    options: PopulationOptions, raws: Sequence[RawGraphs]
) -> tuple[Population, list[tuple[Int, Int, Int]]]:
    """Return the population, and training, validation and test graphs of each place of a round.

    The dataset is split once. Held-out graphs are dealt out to the places and stay there; the training
    graphs are those of clients 0, 1, 2, ..., as examples.

    Raises
    ------
    BadInput
        Examples are nodes or edges, or there are fewer held-out graphs than places.
    """
    raw = raws[0]
    if raw.places is not None:
        raise BadInput(f'partition "population" draws graphs; examples of {raw.name} are nodes or edges')
    labels, _ = strata(raw)
    parts = split(np.arange(len(labels)), labels, options.seed, raw.name)
    least = min(len(parts.val), len(parts.test))
    if least < options.clients:
        raise BadInput(
            f"{options.clients} clients a round cannot share {least} held-out graphs of {raw.name}: "
            "use fewer clients or a larger dataset"
        )
    classes = labels[parts.train]
    alpha = None if options.alpha == "iid" else options.alpha
    by_class = tuple(np.flatnonzero(classes == label) for label in np.unique(classes))
    population = Population(options.population, options.graphs, alpha, options.seed, parts.train, by_class)
    held = [_dealt(part, options, number) for number, part in enumerate((parts.val, parts.test))]
    train = [parts.train[population.drawn(client)] for client in range(options.clients)]
    return population, list(zip(train, *held, strict=True))


def _dealt(graphs: Int, options: PopulationOptions, number: int) -> list[Int]:
    order = permutation(key(options.seed, Purpose.PARTITION, options.population, number), len(graphs))
    return [np.sort(part) for part in np.array_split(graphs[order], options.clients)]
