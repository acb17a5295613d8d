"""What ranks say to each other outside of any run: counts, waits and errors of the collectives; for session.py."""

import time
from unittest.mock import Mock, patch

import numpy as np

from fedmpi.comm import waiting
from fedmpi.comm.collectives import NAMES, Collectives
from fedmpi.comm.neighbours import Neighbours
from fedmpi.comm.seals import SEAL
from fedmpi.errors import BadInput
from tests.refusals import refused


def check_counts(world, crowded):
    """Bytes and calls counted are those of the messages, however ranks wait for them."""
    collectives = Collectives(world.comm, crowded)
    before = np.stack([collectives.calls, collectives.payload_bytes])
    collectives.bcast(np.zeros(10, np.float32))
    collectives.gatherv(np.zeros(world.rank + 1, np.int64), [rank + 1 for rank in range(world.size)])
    collectives.reduce(np.zeros((3, 5), np.int64))
    collectives.scatterv(np.zeros(2 * world.size, np.float32), [2] * world.size, np.float32)
    letters = [np.full(rank + 1, world.rank, np.uint8) for rank in range(world.size)]
    came = collectives.alltoallv(letters, [world.rank + 1] * world.size)
    assert [part.tolist() for part in came] == [[rank] * (world.rank + 1) for rank in range(world.size)]
    counted = np.stack([collectives.calls, collectives.payload_bytes]) - before
    others = sum(range(1, world.size + 1)) - (world.rank + 1)
    assert dict(zip(NAMES, counted.T.tolist(), strict=True)) == {
        "Bcast": [1, 40],
        "Gatherv": [1, 8 * (world.rank + 1) + SEAL],
        "Reduce": [1, 120],
        "Scatterv": [1, 8],
        "Ibarrier": [0, 0],
        "Alltoallv": [1, others],
        "Neighbor_alltoallv": [0, 0],
    }


def check_neighbours(world, crowded):
    """Each rank sends its own part to the next two in a ring, which count what they hand over."""
    collectives = Collectives(world.comm, crowded)
    size, rank = world.size, world.rank
    links = {(one, (one + step) % size) for one in range(size) for step in (1, 2) if step % size}
    to, of = ({pair[1 - end] for pair in links if pair[end] == rank} for end in (0, 1))
    neighbours = Neighbours(collectives)
    for _ in range(2):  # the second time by the same communicator
        parts = {other: np.full(rank + other, rank, np.uint8) for other in to}
        came = neighbours.exchange(links, parts, {other: other + rank for other in of})
        assert {other: part.tolist() for other, part in came.items()} == {
            other: [other] * (other + rank) for other in of
        }
    assert collectives.payload_bytes[NAMES.index("Neighbor_alltoallv")] == 2 * sum(
        rank + other for other in to
    )
    assert len(collectives.graphs) == 1
    Neighbours(collectives)
    assert not collectives.graphs


def check_nobody_waits_for_a_gather(world, length):
    """At a named place rank 0 alone waits for a rank that comes late; the others go on, after large parts too."""
    counts = [length] * world.size
    late = world.size - 1
    if late and world.rank == late:
        time.sleep(1)
    start = time.perf_counter()
    part = np.full(length, world.rank)
    whole = world.collectives.gatherv(part, counts, "somewhere")
    waited = time.perf_counter() - start
    if world.is_root:
        assert np.array_equal(np.concatenate(whole), np.repeat(np.arange(world.size), length))
    assert waited > 0.5 if world.is_root and late else waited < 0.5
    world.comm.Barrier()


def check_ranks_of_a_node_wake_each_other(world):
    """Rank 0 sleeps until the last part has left; it does not look at the call every few milliseconds."""
    if world.rank == world.size - 1:
        time.sleep(0.35)
    with patch.object(waiting, "_look", Mock(wraps=waiting._look)) as look:
        world.collectives.gatherv(np.zeros(3), [3] * world.size, "awaited", patient=True)
    assert 1 <= look.call_count < 20
    world.comm.Barrier()


def check_a_hold_up_is_not_remembered(world):
    """Ranks that once waited long for one that stood still do not make each other wait from then on."""
    if world.rank == world.size - 1:
        time.sleep(1)
    for place in ("first", "second"):
        world.collectives.wait_for_all(place)
    start = time.perf_counter()
    for _ in range(10):
        for place in ("first", "second"):
            world.collectives.wait_for_all(place)
    assert time.perf_counter() - start < 3  # twenty waits of a second each when it was remembered


def check_errors_are_everybodys(world):
    """An error of rank 0, or of any one rank, is raised on all."""

    def refuse():
        raise BadInput(f"refused on {world.rank}")

    last = world.size - 1
    for rank, action in (
        (0, lambda: world.agree(refuse)),
        (0, lambda: world.together(refuse)),
        (last, lambda: world.together(lambda: refuse() if world.rank == last else None)),
    ):
        with refused(f"refused on {rank}") as found:
            action()
        assert found.value.agreed


class OnlyBuffers:
    """A communicator without the calls that pickle: what carries model data may not need them."""

    def __init__(self, comm):
        self._comm = comm

    def __getattr__(self, name):
        pickles = name[0].islower() and name not in ("rank", "size")
        assert not pickles, f"{name} pickles"
        return getattr(self._comm, name)
