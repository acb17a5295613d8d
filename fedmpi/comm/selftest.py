"""A test of every collective that a run uses, with sums that are known beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedmpi.comm.world import World
from fedmpi.errors import RunFailed

_SIZE = 24_960


def check_collectives(world: World) -> list[str]:
    """Send a token round the ranks, run each collective once; return one line for each.

    Raises
    ------
    RunFailed
        A collective delivered wrong numbers on this rank.
    """
    collectives, rank, size = world.collectives, world.rank, world.size
    token = np.full(_SIZE, float(rank))
    world.comm.Sendrecv_replace(token, dest=(rank + 1) % size, source=(rank - 1) % size)
    _require("Sendrecv", bool(np.all(token == (rank - 1) % size)), rank)
    sent = np.arange(_SIZE, dtype=np.float32)
    got = collectives.bcast(sent.copy() if rank == 0 else np.zeros_like(sent))
    _require("Bcast", np.array_equal(got, sent), rank)
    counts = [other + 1 for other in range(size)]
    gathered = collectives.gatherv(np.full(rank + 1, float(rank)), counts)
    expected = np.repeat(np.arange(size, dtype=float), counts)
    _require("Gatherv", gathered is None or np.array_equal(np.concatenate(gathered), expected), rank)
    part = collectives.scatterv(expected if rank == 0 else None, counts, np.float64)
    _require("Scatterv", bool(np.all(part == rank)) and len(part) == rank + 1, rank)
    check_sums(world)
    waited = collectives.wait_for_all()
    barrier = f"barrier with sleeping waiters: {1e3 * waited:.1f} ms"
    return ["ring: right", "Bcast, Gatherv, Scatterv, Reduce: right", barrier]


def check_sums(world: World) -> None:
    """Sum integers and floats over ranks, by MPI or the transport in its place.

    Raises
    ------
    RunFailed
        Wrong sums on this rank.
    """
    rank, size = world.rank, world.size
    total = world.collectives.reduce(np.full(_SIZE, 2**61 // size + rank, np.int64))
    exact = 2**61 // size * size + size * (size - 1) // 2
    _require("Reduce of int64", total is None or bool(np.all(total == exact)), rank)
    total = world.collectives.reduce(np.full(_SIZE, rank, np.float32))
    _require("Reduce of float32", total is None or bool(np.all(total == size * (size - 1) / 2)), rank)


def check_device_buffers(world: World, device: Any) -> str:
    """Have MPI reduce, broadcast and scatter from and to memory of each rank's device; return a line.

    Parameters
    ----------
    world : World
    device : torch.device
        This rank's.

    Raises
    ------
    RunFailed
        Wrong numbers on this rank. An MPI that knows nothing of GPUs may end the process instead.
    """
    import torch

    collectives, rank, size = world.collectives, world.rank, world.size
    on = "cpu" if rank == 0 else device
    part = torch.full((_SIZE,), 2**61 // size + rank, dtype=torch.int64, device=on)
    sent = torch.arange(_SIZE, dtype=torch.float32, device=on)
    got = sent.clone() if rank == 0 else torch.zeros_like(sent)
    piece = torch.zeros(rank + 1, device=on)
    if device.type == "cuda" and rank:
        torch.cuda.current_stream(device).synchronize()
    total = collectives.reduce(part.numpy() if rank == 0 else part, blocking=True)
    exact = 2**61 // size * size + size * (size - 1) // 2
    _require("Reduce from device memory", total is None or bool(np.all(total == exact)), rank)
    collectives.bcast(got.numpy() if rank == 0 else got, blocking=True)
    _require("Bcast to device memory", bool(torch.equal(got, sent)), rank)
    counts = [other + 1 for other in range(size)]
    whole = np.repeat(np.arange(size, dtype=np.float32), counts) if rank == 0 else None
    collectives.scatterv(whole, counts, np.float32, piece.numpy() if rank == 0 else piece, blocking=True)
    _require("Scatterv to device memory", bool(torch.all(piece == rank)), rank)
    return f"Reduce, Bcast, Scatterv in memory of {device.type}: right"


def _require(name: str, right: bool, rank: int) -> None:
    if not right:
        raise RunFailed(f"{name} delivered wrong numbers on rank {rank}; this MPI cannot be used")
