"""Ranks that share cores by the dozen: one process of a node loads the code, the other ranks are its forks.

A rank that imports torch takes 2.5 s of CPU time, and 200 MB that it shares with no other. Ranks that far
outnumber the cores would take turns at it. So the node's first rank goes on alone until MPI is to start. The
others wait with little more than Python in memory, hand over environment and open files, and become proxies.
A proxy passes signals on to its fork and ends as that ends; no fork outlives its proxy. A rank that does not
meet the first one goes on by itself, as all do where ranks have cores of their own.

    launcher --+-- first rank ----- keeper --+-- fork: rank 1
               +-- proxy of rank 1           +-- fork: rank 2
               +-- proxy of rank 2
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from fedmpi.comm import launch

_RANKS_PER_CORE = 4
"""Beyond it ranks are forks."""
_MEET_S = 30.0
"""How long ranks wait for each other; then each goes on by itself."""
_AGAIN_S = 0.02
_MOST_BYTES = 1 << 20
_NUMBER, _CREDENTIALS = struct.Struct("=i"), struct.Struct("3i")
_F_SETSIG = 10  # of Linux's fcntl.h
_PR_SET_PDEATHSIG = 1
_PASSED_ON = {signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP}
_LAUNCHER = "PMI_FD"
"""Variable with the descriptor by which MPICH talks to its launcher."""

_place: list[socket.socket] = []
"""Of the node's first rank: where the others come to, until they are forked."""
_proxy: list[socket.socket] = []
"""Of a fork: its proxy, which it ends with."""


def are_many() -> bool:
    """Return whether this node's ranks so outnumber its cores that they are forks.

    A rank may be bound to some of the cores. What its launcher may use is what all of them have.
    """
    return launch.local_size() > _RANKS_PER_CORE * len(os.sched_getaffinity(os.getppid()))


def meet() -> None:
    """Wait as the node's first rank for the others; as one of them become a proxy, which does not return."""
    if not are_many():
        return
    place = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    address = f"\0fedmpi-{os.getuid()}-{os.getppid()}"  # one launcher has started all ranks of a node
    if not launch.is_first_of_node():
        if _connected(place, address):
            _hand_over(place)
        return
    with suppress(OSError):
        place.bind(address)
        place.listen(launch.local_size())
        _place.append(place)
        import mpi4py

        mpi4py.rc.initialize, mpi4py.rc.finalize = False, True  # what is imported must not start MPI


def fork_ranks(prepare: Callable[[], object] | None = None) -> None:
    """Fork the node's other ranks: each goes on from here with what its proxy handed over.

    Nothing happens where ranks are not many.

    Parameters
    ----------
    prepare : callable, optional
        Loads what all ranks need, once; MPI has not started.
    """
    if not _place:
        return
    if prepare is not None:
        prepare()
    gc.collect()
    gc.freeze()  # or the collector of each fork writes to all that it shares
    sys.stdout.flush()
    sys.stderr.flush()
    place, (waiting, gate) = _place.pop(), os.pipe()
    if os.fork() == 0:
        _keep(place, gate)
    place.close()
    os.close(gate)
    os.read(waiting, 1)  # until all are forked: a rank that waits in MPI's start keeps a core busy
    os.close(waiting)


def leave(code: int) -> NoReturn:
    """End this process; a fork without taking Python apart, which would write to all that it shares."""
    if not _proxy:
        sys.exit(code)
    if launch.mpi_has_started():
        sys.modules["mpi4py.MPI"].Finalize()
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).exit(code)  # not os._exit: MPICH takes leave of its launcher in C's exit
    raise AssertionError("C's exit does not return")


def _connected(place: socket.socket, address: str) -> bool:
    until = time.monotonic() + _MEET_S
    while time.monotonic() < until:
        with suppress(OSError):
            place.connect(address)
            return _is_ours(place)
        time.sleep(_AGAIN_S)
    return False


def _is_ours(other: socket.socket) -> bool:
    """Return whether the other end is a process of this user."""
    found = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(found)[1] == os.getuid())


def _hand_over(place: socket.socket) -> None:
    """Hand this rank over, and end as its fork does; return if the first rank ended before it forked."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    about = {"environment": dict(os.environ), "cores": sorted(os.sched_getaffinity(0))}
    files = [0, 1, 2, *([int(os.environ[_LAUNCHER])] if _LAUNCHER in os.environ else [])]
    with suppress(OSError):
        socket.send_fds(place, [json.dumps(about).encode()], files)
        if (fork := _received(place)) is not None:
            for number in _PASSED_ON:
                signal.signal(number, lambda number, _: os.kill(fork, number))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
            _end_as(_received(place))
    place.close()
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _received(place: socket.socket) -> int | None:
    message = place.recv(_NUMBER.size)
    return int(_NUMBER.unpack(message)[0]) if message else None


def _end_as(status: int | None) -> NoReturn:
    """End with the exit code or by the signal of a fork; without its status its keeper was killed."""
    code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    if code < 0:
        with suppress(OSError):  # KILL and STOP have no handlers
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _keep(place: socket.socket, gate: int) -> None:
    """Fork a rank for each proxy, tell the proxies how they end, and end; only forks return."""
    _close_launchers_file()
    proxies: dict[int, socket.socket] = {}
    until = time.monotonic() + _MEET_S
    while len(proxies) < launch.local_size() - 1:
        if not select.select([place], [], [], max(0.0, until - time.monotonic()))[0]:
            break
        proxy = place.accept()[0]
        message, files, *_ = socket.recv_fds(proxy, _MOST_BYTES, 4)
        if not message or not _is_ours(proxy):
            continue
        fork = os.fork()
        if fork == 0:
            for other in proxies.values():
                other.close()
            _become(proxy, json.loads(message), files)
            return
        for file in files:
            os.close(file)
        proxies[fork] = proxy
        _tell(proxy, fork)
    place.close()
    os.close(gate)
    for _ in proxies:
        fork, status = os.wait()
        _tell(proxies[fork], status)
    os._exit(0)


def _tell(proxy: socket.socket, number: int) -> None:
    with suppress(OSError):  # it was killed
        proxy.send(_NUMBER.pack(number))


def _close_launchers_file() -> None:
    with suppress(KeyError, OSError):
        os.close(int(os.environ[_LAUNCHER]))


def _become(proxy: socket.socket, about: dict[str, Any], files: list[int]) -> None:
    """Take over what a proxy handed over; from now on end with the proxy, and with the keeper."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    fcntl.fcntl(proxy, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(proxy, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(proxy, fcntl.F_SETFL, fcntl.fcntl(proxy, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([proxy], [], [], 0)[0]:  # it has ended already
        os._exit(1)
    _proxy.append(proxy)
    os.setsid()  # as launchers do: signals to the first rank's group are not meant for this one
    for stream, file in enumerate(files[:3]):
        os.dup2(file, stream)
        os.close(file)
    os.environ.clear()
    os.environ.update(about["environment"])
    if files[3:]:
        os.environ[_LAUNCHER] = str(files[3])
    os.sched_setaffinity(0, about["cores"])
