"""Sums over ranks by torch.distributed in MPI's place: Gloo in host memory, NCCL between GPUs."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import numpy.typing as npt
import torch
from torch import distributed

from fedmpi.comm import alarm
from fedmpi.comm.collectives import Collectives
from fedmpi.comm.start import LIMIT_S
from fedmpi.comm.world import World
from fedmpi.errors import BadInput, FedmpiError, RankFailed, RunFailed

T = TypeVar("T")

_LIMIT = timedelta(seconds=LIMIT_S)
_LOOK_S = 1e-4
_SETTLE_S = 0.05
"""Until Gloo's thread has dropped the last sum: that takes Python's lock, which a group's end holds."""


class Transport:
    """A group of all ranks, in the order of MPI's; a process has one at a time.

    Parameters
    ----------
    name : str
        "gloo" or "nccl".
    device : torch.device
        Whose memory is summed in.
    store : Store
        In which ranks find each other.
    world : World
    """

    def __init__(self, name: str, device: torch.device, store: Any, world: World) -> None:
        self._name, self._device, self._comm = name, device, world.comm
        self._rank, self._size = world.rank, world.size
        distributed.init_process_group(
            name, store=store, rank=self._rank, world_size=self._size, timeout=_LIMIT
        )

    def reduce(self, part: Any) -> npt.NDArray[Any] | None:
        """Return the sum of all ranks' parts at rank 0; None elsewhere.

        Integers have the same sum in any order. Floats are gathered and added in the order of ranks, so that
        their bits depend on the number of ranks alone.

        Raises
        ------
        RankFailed
            Another rank has died or ends the job, or the network has failed.
        """
        whole = torch.as_tensor(part).to(self._device, copy=True)
        try:
            if whole.is_floating_point():
                self._add_in_order(whole)
            else:
                self._wait(distributed.reduce(whole, dst=0, async_op=True))
            if self._device.type == "cuda":
                torch.cuda.current_stream(self._device).synchronize()
        except RuntimeError as error:
            text = f"a sum by {self._name} failed: another rank has died, or the network has failed"
            raise RankFailed(f"{text} ({_line(error)})") from error
        return None if self._rank else whole.cpu().numpy()

    def _add_in_order(self, whole: torch.Tensor) -> None:
        parts = None if self._rank else [torch.empty_like(whole) for _ in range(self._size)]
        self._wait(distributed.gather(whole, parts, dst=0, async_op=True))
        for other in parts[1:] if parts else ():
            whole += other

    def _wait(self, work: distributed.Work) -> None:
        """Wait for a call; rank 0 looks whether another rank ends the job instead."""
        while self._rank == 0 and not work.is_completed():
            alarm.check(self._comm)
            time.sleep(_LOOK_S)
        work.wait()

    def close(self) -> None:
        """Leave the other ranks."""
        time.sleep(_SETTLE_S)
        distributed.destroy_process_group()


def connect(name: str, world: World, device: torch.device) -> None:
    """Have sums over ranks made by a `Transport` from now on (a collective call).

    Ranks meet at a free port of rank 0's node, which MPI tells them.

    Parameters
    ----------
    name : str
        "gloo" or "nccl".
    world : World
    device : torch.device
        This rank's.

    Raises
    ------
    BadInput
        On every rank: this torch cannot, or NCCL has no GPU for each rank.
    RunFailed
        On every rank: they do not reach each other.
    """
    world.together(partial(_check_built, name))
    if name == "nccl":
        uuid = str(torch.cuda.get_device_properties(device).uuid)
        _check_apart(world.comm.allgather((socket.gethostname(), uuid)))
    stores: list[Any] = []

    def listen() -> tuple[str, int]:
        alone = len(world.node_ranks) == world.size
        host = "127.0.0.1" if alone else socket.gethostname()
        stores.append(_reached(lambda: _store(host, 0, world, leads=True)))
        return host, stores[0].port

    host, port = world.agree(listen)

    def join() -> Transport:
        store = stores[0] if stores else _store(host, port, world, leads=False)
        place = torch.device("cpu") if name == "gloo" else device
        return Transport(name, place, store, world)

    world.collectives.transport = world.together(lambda: _reached(join))


@contextmanager
def closing(collectives: Collectives) -> Iterator[None]:
    """Leave the transport at the end, unless this rank ends alone: the others may be in a sum."""
    try:
        yield
    except FedmpiError as error:
        if error.agreed:
            _close(collectives)
        raise
    _close(collectives)


def _close(collectives: Collectives) -> None:
    transport, collectives.transport = collectives.transport, None
    if transport is not None:
        transport.close()


def _check_built(name: str) -> None:
    built = distributed.is_available() and getattr(distributed, f"is_{name}_available")()
    if not built:
        raise BadInput(f'reduction.transport = "{name}": torch {torch.__version__} was built without it')


def _check_apart(places: Sequence[tuple[str, str]]) -> None:
    """Refuse ranks that share a GPU; `places` are host and GPU of each rank."""
    for rank, place in enumerate(places):
        if (first := places.index(place)) < rank:
            text = f"ranks {first} and {rank} share a GPU of {place[0]}, and NCCL takes one for each rank"
            error = BadInput(f'reduction.transport = "nccl": {text}: use fewer ranks, or "mpi"')
            error.agreed = True
            raise error


def _store(host: str, port: int, world: World, *, leads: bool) -> Any:
    where = (host, port, world.size, leads, _LIMIT)
    return distributed.TCPStore(*where, wait_for_workers=False)  # type: ignore[attr-defined]


def _reached(action: Callable[[], T]) -> T:
    """Return what an action returns that opens connections."""
    try:
        return action()
    except RuntimeError as error:
        raise RunFailed(f"the ranks do not reach each other by torch.distributed ({_line(error)})") from error


def _line(error: Exception) -> str:
    return str(error).splitlines()[0]
