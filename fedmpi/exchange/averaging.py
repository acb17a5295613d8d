"""What averages vectors in a run: clients' updates, the criterion of a split, figures of clients."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fedmpi.case.reductions import SecureOptions
from fedmpi.case.schema import Case
from fedmpi.client.states import States
from fedmpi.comm.world import World
from fedmpi.exchange.aggregation import Aggregation, Plain, RowMeans, Rows
from fedmpi.exchange.buffers import Buffers
from fedmpi.exchange.chain import Chain
from fedmpi.exchange.client_means import ClientMeans
from fedmpi.exchange.figures import Figures
from fedmpi.exchange.group_models import Exchange
from fedmpi.exchange.meter import Meter
from fedmpi.exchange.privacy import Noisy
from fedmpi.exchange.splitting import Splitter
from fedmpi.programs.hooks import Hooks

if TYPE_CHECKING:
    from fedmpi.exchange.key_ring import KeyRing

Ints = npt.NDArray[np.int64]


class Averaging:
    """Makes the aggregations of a run, by the case's reduction, its algorithm and its privacy.

    Where sums are secret, all aggregations share one key ring. Making the first one exchanges the keys, which
    is a collective call: every rank makes the same aggregations in the same order.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    world : World
    states : States
        Of the clients that this rank hosts.
    meter : Meter
    chain : Chain
    announces : bool
        Whether participants may drop out.

    Attributes
    ----------
    exchange : Exchange
        Of the updates.
    client_means : ClientMeans or None
        What averages them, where the algorithm makes a model for each client.
    """

    def __init__(
        self,
        case: Case,
        algorithm: Hooks,
        world: World,
        states: States,
        meter: Meter,
        chain: Chain,
        *,
        announces: bool,
    ) -> None:
        self._case, self._algorithm, self._world, self._states = case, algorithm, world, states
        self._meter, self._noise, self._announces = meter, chain.noise, announces
        self._keys: KeyRing | None = None
        self.client_means: ClientMeans | None = None
        self.exchange = self._exchange()

    def _exchange(self) -> Exchange:
        collectives, hosts, size = self._world.collectives, self._states.hosts, self._states.size
        algorithm, states = self._algorithm, self._states
        buffers = Buffers.of(self._case.reduction, states.device, is_root=self._world.is_root)
        aggregation = self._sums(size, buffers=buffers)
        if algorithm.rows is not None:
            aggregation = RowMeans(Rows(collectives, hosts, size), algorithm.rows, size, self._meter)
        if "means" in algorithm.decides:
            rows = Rows(collectives, hosts, size)
            aggregation = ClientMeans(rows, size, self._meter)
            self.client_means = aggregation
        if self._noise is not None and not self._noise.distributed:
            aggregation = Noisy(aggregation, self._noise)
        return Exchange(collectives, hosts, aggregation, algorithm, size, states.trained, buffers)

    def splitter(self, samples: Ints) -> Splitter | None:
        """Return what splits groups, for an algorithm whose groups split.

        Its criterion is about the parameters without running statistics.

        Parameters
        ----------
        samples : int64 [clients]
            Training examples of each client.
        """
        hooks = self._algorithm.splits
        if hooks is None or not self._algorithm.communicates:
            return None
        collectives, hosts, size = self._world.collectives, self._states.hosts, self._states.trained
        return Splitter(
            collectives, self._sums(size, buffers=Buffers()), Rows(collectives, hosts, size), hooks, samples
        )

    def figures(self, width: int) -> Figures | None:
        """Return what sums so many figures of each client, where no single client's are recorded."""
        if self._case.record == "full":
            return None
        return Figures(partial(self._sums, buffers=Buffers()), len(self._states.hosts), width)

    def _sums(self, size: int, clip: float | None = None, *, buffers: Buffers) -> Aggregation:
        """Return what averages vectors of `size` elements by the case's reduction, or with another clip."""
        collectives, hosts, options = self._world.collectives, self._states.hosts, self._case.reduction
        shares = self._noise is not None and self._noise.distributed and clip is None
        noise = self._noise if shares else None
        if not isinstance(options, SecureOptions):
            return Plain(collectives, hosts, options, size, buffers, noise)
        from fedmpi.exchange.key_ring import KeyRing  # these need the extra secure
        from fedmpi.exchange.masked import Masked, protocol_of

        if self._keys is None:
            with self._meter.step("keys"):
                self._keys = KeyRing(
                    collectives, hosts, renewed=options.keys == "sum", signed=options.server == "active"
                )
        protocol, keys, bound = protocol_of(options, size), self._keys, clip or options.clip
        return Masked(
            collectives,
            hosts,
            protocol,
            bound,
            size,
            keys,
            self._meter,
            announces=self._announces,
            noise=noise,
        )
