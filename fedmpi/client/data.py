"""A client's graphs, and the batches in which it trains on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fedmpi.case.schema import Case
from fedmpi.client.passes import Passes
from fedmpi.client.state import ClientState
from fedmpi.graphs.batch import Batch
from fedmpi.graphs.packed import Int
from fedmpi.seeds import Purpose, key, permutation


@dataclass
class ClientData(ClientState):
    """A client and its graphs.

    Attributes
    ----------
    passes : Passes or None
        Its training graphs, and its validation graphs followed by its test graphs; None for a member
        of a `ClientGroup`, which holds them.
    drawn : int64 [num_train] or None
        Its training graphs of this round among those of `passes`, where its place stands for other clients
        in every round; None: all of them.
    most_batches : int or None
        Of an epoch; None: all.
    public : Batch or None
        The graphs that all clients have.
    """

    passes: Passes | None = None
    drawn: Int | None = None
    most_batches: int | None = None
    public: Batch | None = None

    def batch_numbers(self, case: Case, round: int, epoch: int) -> Iterator[Int | None]:
        """Yield the numbers of each batch's training graphs; None for a client whose graphs fit one batch.

        A last batch with fewer graphs than the objective can use is left out.
        """
        if self.num_train <= case.batch_size:
            yield self.drawn
            return
        stream = key(case.seed, Purpose.SHUFFLE, self.id, round, epoch)
        order = permutation(stream, self.num_train)
        cuts = range(0, len(order) - case.objective.smallest_batch + 1, case.batch_size)
        for cut in cuts[: self.most_batches]:
            numbers = order[cut : cut + case.batch_size]
            yield numbers if self.drawn is None else self.drawn[numbers]

    @property
    def loaded_passes(self) -> Passes:
        """Its passes; a client that trains alone has them."""
        assert self.passes is not None
        return self.passes
