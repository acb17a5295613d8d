"""What becomes of an update between training and the next model: one chain, a link for each thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedmpi.case.privacy import Clipped, Private
from fedmpi.case.reductions import SecureOptions
from fedmpi.case.schema import Case
from fedmpi.client.deltas import Row
from fedmpi.client.states import States
from fedmpi.comm.world import World
from fedmpi.compression.base import Compressor, Linear
from fedmpi.exchange.aggregation import Aggregation, Buffers, Plain, gather_rows
from fedmpi.exchange.attacks import Attackers
from fedmpi.exchange.codes import Codes, Decoded, Projected, mean_on_all
from fedmpi.exchange.compression import Compression
from fedmpi.exchange.down_link import DownLink
from fedmpi.exchange.dropouts import Step
from fedmpi.exchange.gossip import Gossip
from fedmpi.exchange.group_models import Exchange
from fedmpi.exchange.link import Link
from fedmpi.exchange.meter import Meter
from fedmpi.exchange.planning import Answers, Rows
from fedmpi.exchange.privacy import Clipping, NoiseOfMeans, elements
from fedmpi.exchange.totals import Totals
from fedmpi.exchange.updates import Updates
from fedmpi.programs.hooks import Hooks
from fedmpi.seeds import Purpose, key
from fedmpi.topologies.base import TopologyOptions

if TYPE_CHECKING:  # it needs the extra secure
    from fedmpi.exchange.key_ring import KeyRing

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Chain:
    """The links of a run in their order, attack, clipping, compression, noise; and the sums at its end.

    Where sums are secret, all of them share one key ring. Making the first exchanges the keys, which is a
    collective call: every rank makes the same sums in the same order.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    world : World
    states : States
        Of the clients that this rank hosts.
    meter : Meter
    weights : int64 [clients]
        Of the clients in averages.
    num_clients, sampled : int
        Of whom so many take part in each round.
    announces : bool
        Whether participants may drop out.

    Attributes
    ----------
    exchange : Exchange or Gossip
        Of the models.
    """

    def __init__(
        self,
        case: Case,
        algorithm: Hooks,
        world: World,
        states: States,
        meter: Meter,
        weights: Ints,
        num_clients: int,
        sampled: int,
        *,
        announces: bool,
    ) -> None:
        self._case, self._algorithm, self._world, self._states = case, algorithm, world, states
        self._meter, self._announces = meter, announces
        self._keys: KeyRing | None = None
        compressor = case.compression.make(states.tensors, key(case.seed, Purpose.COMPRESSION))
        self._codes: Codes | None = None
        if compressor is not None and algorithm.communicates and not case.topology.gossips:
            self._codes = Codes(world.collectives, states.hosts, compressor, states.size)
        self._down = self._down_link(num_clients)
        links: list[Link] = [Attackers(case, states.hosts, world.collectives, states.trained)]
        if isinstance(case.privacy, Clipped):
            links.append(Clipping(case.privacy.clip))
        kept = {number: client.chain for number, client in states.clients.items()}
        self._compression = Compression(case, kept, self._codes, partial(self._mean_on_all, weights))
        links.append(self._compression)
        self._noise: NoiseOfMeans | None = None
        if isinstance(case.privacy, Private):
            size = elements(case, states.tensors)
            self._noise = NoiseOfMeans(case, size, num_clients, sampled, is_root=world.is_root)
            links.append(self._noise)
        self._links: Sequence[Link] = links
        by_mpi, own = case.reduction.buffers == "device", None if world.is_root else states.device
        summed = Buffers(own if case.reduction.on_device else None, by_mpi)
        moved = Buffers(own if by_mpi else None, by_mpi)
        sums, sizes = self._updates(states.size, summed, learns=True), (states.size, states.trained)
        where, stays = (world.collectives, states.hosts), summed.device is not None
        self._gossip = self._gossips(compressor)
        self.exchange: Exchange | Gossip = self._gossip or Exchange(
            *where, sums, algorithm, *sizes, moved, self.on_mean, self._down, stays
        )

    def alter(self, round: int, participants: Ints, updates: Updates) -> None:
        """Change what the participants of a round (0-based), int64 [k], send (a collective call)."""
        for link in self._links:
            with self._meter.phase(link.phase):
                link.alter(round, participants, updates)

    def settle(self, participants: Ints, group: Ints, steps: Ints | None) -> None:
        """Have links keep what belongs to updates that are in a mean.

        Parameters
        ----------
        participants : int64 [k]
        group, steps : int64 [clients]
            Groups, and the `Step` before which each client drops out, if any does.
        """
        sent = participants if steps is None else participants[steps[participants] > Step.UPLOAD]
        has_mean = [bool(self.exchange.survivors.get(int(group[client]))) for client in sent]
        self._compression.settle(sent[has_mean].tolist())

    def on_mean(self, group: int, mean: Floats) -> Floats:
        """Return what the server makes of the mean of a group, float64 [shared]."""
        for link in self._links:
            mean = link.on_mean(group, mean)
        return mean

    @property
    def client_bytes(self) -> tuple[int, int]:
        """Bytes that a client's update takes on its way up, and its group's model on its way down.

        In single precision for every reduction but for what the links change; masks add none. Without a
        server what the busiest client sends to others, and gets.
        """
        if self._gossip is not None:
            return self._gossip.client_bytes
        whole, update = 4 * self._states.size, 4 * self._states.trained
        up = update
        for link in self._links:
            up = link.nbytes(self._states.trained, up)
        down = whole if self._down is None else self._down.nbytes
        return whole - update + up, down + self._compression.received_bytes

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes of a round that a participant sends, and gets."""
        sent, down = self.client_bytes if self._algorithm.communicates else (0, 0)
        return sent + self._states.messages.nbytes, down + self._states.tells.nbytes

    def expected_bytes(self, participants: Ints) -> Ints:
        """Return the bytes that each client sends where these take part, and gets, int64 [2, clients]."""
        if self._gossip is not None:
            return self._gossip.expected_bytes(participants)
        return np.repeat(np.array([self.traffic], np.int64).T, len(self._states.hosts), axis=1)

    @property
    def everybody_receives(self) -> bool:
        """Whether those that take no part in a round get its models, too: changes of what they have."""
        return self._down is not None

    def server_state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a checkpoint holds of the server for the chain."""
        kept = None if self._down is None else self._down.residuals
        return {} if kept is None else {"left_out": kept}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take back what the server kept."""
        if "left_out" in arrays and self._down is not None:
            self._down.residuals = np.array(arrays["left_out"])

    def rows(self, round: int) -> dict[str, npt.NDArray[Any]]:
        """Return the values of all links' fields of the record, and of the topology's, on rank 0."""
        own = {} if self._gossip is None else self._gossip.rows(round)
        return own | {name: value for link in self._links for name, value in link.rows(round).items()}

    def answers(self, samples: Ints) -> Answers:
        """Return what answers the server's program, of clients with so many training examples [clients]."""
        states, asks = self._states, "means" in self._algorithm.asks and self._algorithm.communicates
        means = self._updates(states.trained, Buffers()) if asks else None
        rows: Rows = partial(gather_rows, self._world.collectives, states.hosts)
        if self._codes is not None:
            rows = self._codes.rows
        return Answers(rows, means, states.trained, states.size, samples)

    def _down_link(self, num_clients: int) -> DownLink | None:
        case, states = self._case, self._states
        compressor = case.down_compression.make(states.tensors, 0)
        if compressor is None or not self._algorithm.communicates:
            return None
        splits = "splits" in self._algorithm.decides
        groups = num_clients if splits else int(self._algorithm.groups(num_clients).max()) + 1
        kept = np.zeros((groups, states.trained), np.float32) if case.down_compression.residual else None
        return DownLink(compressor, case.seed, states.size, kept if self._world.is_root else None)

    def _gossips(self, compressor: Compressor | None) -> Gossip | None:
        case, states = self._case, self._states
        if not isinstance(case.topology, TopologyOptions):
            return None
        kept = {number: client.chain for number, client in states.clients.items()}
        where = (self._world.collectives, states.hosts, (states.size, states.trained), self._algorithm)

        def trained(client: int) -> Row:
            return states.clients[client].received()

        return Gossip(case.topology, case.seed, *where, trained, kept, compressor)

    def totals(self, width: int) -> Totals | None:
        """Return what sums so many counts of each client, where no single client's are recorded."""
        if self._case.record == "full":
            return None
        return Totals(partial(self._sums, buffers=Buffers()), len(self._states.hosts), width)

    def _updates(self, size: int, buffers: Buffers, *, learns: bool = False) -> Aggregation:
        """Return what averages so many elements of updates, compressed or not."""
        codes = self._codes
        if codes is None:
            return self._sums(size, buffers=buffers)
        if not isinstance(codes.compressor, Linear):
            return Decoded(codes, self._case.reduction, size)
        inner = self._sums(codes.compressor.coefficients + size - codes.compressor.size, buffers=buffers)
        learn = self._compression.learn if learns and self._case.compression.pooled else None
        return Projected(codes, inner, size, learn)

    def _mean_on_all(
        self, weights: Ints, participants: Ints, vectors: Mapping[int, Row], size: int
    ) -> Floats:
        with self._meter.phase("communicate"):
            sums = self._sums(size, buffers=Buffers())
            return mean_on_all(self._world.collectives, sums, participants, weights, vectors, size)

    def _sums(self, size: int, clip: float | None = None, *, buffers: Buffers) -> Aggregation:
        """Return what averages vectors of `size` elements by the case's reduction, or with another clip."""
        collectives, hosts, options = self._world.collectives, self._states.hosts, self._case.reduction
        distributed = self._noise is not None and self._noise.distributed and clip is None
        noise = self._noise.share if self._noise is not None and distributed else None
        if not isinstance(options, SecureOptions):
            return Plain(collectives, hosts, options, size, buffers, noise)
        from fedmpi.exchange.key_ring import KeyRing  # these need the extra secure
        from fedmpi.exchange.masked import Masked, protocol_of

        if self._keys is None:
            with self._meter.step("keys"):
                self._keys = KeyRing(
                    collectives, hosts, renewed=options.keys == "sum", signed=options.server == "active"
                )
        protocol, bound = protocol_of(options, size), clip or options.clip
        where = (collectives, hosts, protocol, bound, size, self._keys, self._meter)
        return Masked(*where, self._announces, noise)
