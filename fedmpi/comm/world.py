"""The ranks of a run: their number and hosts, errors on some or all of them, actions of rank 0 alone."""

from __future__ import annotations

import os
import pickle
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from mpi4py import MPI

from fedmpi.comm import alarm, launch
from fedmpi.comm.collectives import Collectives
from fedmpi.comm.interrupt import Stopped, leave, release
from fedmpi.comm.resources import memory_in_use
from fedmpi.comm.settings import crowded
from fedmpi.comm.wake_ups import of_node
from fedmpi.errors import BadInput, FedmpiError, RankFailed
from fedmpi.visible import complain, visible_lines

T = TypeVar("T")


class World:
    """The communicator of a run and what a rank knows of its place in it.

    Parameters
    ----------
    failure : (int, str), optional
        Exit code and line of an error that this rank had before MPI started.

    Raises
    ------
    BadInput
        When the launcher started several ranks but each found itself alone:
        launcher and mpi4py belong to different MPIs.
    FedmpiError
        On every rank, the failure of the lowest rank that has one.
    """

    def __init__(self, failure: tuple[int, str] | None = None) -> None:
        self.comm: MPI.Intracomm = MPI.COMM_WORLD
        self.rank: int = self.comm.rank
        self.size: int = self.comm.size
        _check_size(self.size)
        _raise_failures(self.comm.allgather(failure))
        local = self.comm.Split_type(MPI.COMM_TYPE_SHARED, key=self.rank)
        self.local_rank: int = local.rank
        threads = int(os.environ.get("OMP_NUM_THREADS") or 1)
        places = local.allgather({"rank": self.rank, "host": "", "cores": sorted(os.sched_getaffinity(0))})
        self.node_ranks: list[int] = [place["rank"] for place in places]
        wake_ups = of_node(local, self.rank)
        local.Free()
        shared = bool(self.comm.allreduce(int(bool(crowded(places, threads))), op=MPI.MAX))
        self.collectives = Collectives(self.comm, shared, wake_ups)
        release()

    @property
    def is_root(self) -> bool:
        """Whether this is rank 0, the server."""
        return self.rank == 0

    def workers(self, *, shared: bool) -> list[int]:
        """Return the ranks that host clients: rank 0 last, where the server is `shared` or alone."""
        return [*range(1, self.size), *([0] if shared or self.size == 1 else [])]

    def agree(self, action: Callable[[], T]) -> T:
        """Run `action` on rank 0 while the others sleep; its result or its error is everybody's.

        For control data (paths, plans), which travels pickled; never for models.
        """
        answer: tuple[str, Any] = ("", None)
        if self.is_root:
            try:
                answer = ("value", action())
            except FedmpiError as error:
                answer = ("error", error)
        self.collectives.wait_for_all()
        kind, value = self.comm.bcast(answer, root=0)
        if self.collectives.listener is not None:
            self.collectives.note("control", pickle.dumps(answer), receiver=None)
        if kind == "error":
            value.agreed = True
            raise value
        return value  # type: ignore[no-any-return]

    def together(self, action: Callable[[], T]) -> T:
        """Run `action` on every rank; the error of the lowest rank that failed is everybody's."""
        error: FedmpiError | None = None
        try:
            result = action()
        except FedmpiError as mine:
            error = mine
        self.collectives.wait_for_all()
        errors = [other for other in self._all(error) if other is not None]
        if errors:
            errors[0].agreed = True
            raise errors[0]
        return result

    def any(self, mine: bool) -> bool:
        """Return whether the answer is yes on any rank (a collective call)."""
        if self.collectives.listener is not None:
            self._all(mine)
        return bool(self.comm.allreduce(int(mine), op=MPI.MAX))

    def _all(self, mine: T) -> list[T]:
        """Return every rank's control data, on every rank."""
        values = self.comm.allgather(mine)
        if self.collectives.listener is not None:
            for rank, value in enumerate(values):
                self.collectives.note("control", pickle.dumps(value), rank)
        return values

    def fail(self, error: FedmpiError) -> NoReturn:
        """End every rank of the job for an error that this rank alone has seen: one line, its exit code."""
        if self.size == 1:
            raise error
        text = _of_rank(self.rank, str(error))
        alarm.tell(self.comm, error.exit_code, text)
        if not (isinstance(error, RankFailed) and error.printed):
            complain(text)
        _end(error.exit_code)

    def describe(self, device: str = "") -> dict[str, Any]:
        """Return MPI library and each rank's host, cores, device, CPU time and memory (a collective call).

        Parameters
        ----------
        device : str
            What this rank computes on.
        """
        mine = {
            "rank": self.rank,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "local_rank": self.local_rank,
            "cores": sorted(os.sched_getaffinity(0)),
            "cpu_seconds": time.process_time(),
            "memory_bytes": memory_in_use(),
        }
        if device:
            mine["device"] = device
        ranks = self._all(mine)
        return {
            "library": _library(),
            "standard": ".".join(map(str, MPI.Get_version())),
            "size": self.size,
            "ranks": ranks,
        }


def _check_size(size: int) -> None:
    expected = launch.expected_size()
    if expected is not None and expected != size:
        raise BadInput(
            f"the launcher started {expected} ranks but MPI sees {size}: launcher and mpi4py use different "
            f"MPIs (mpi4py has {_library()}); use the mpiexec of that MPI"
        )


def _raise_failures(failures: Sequence[tuple[int, str] | None]) -> None:
    """Raise the failure of the lowest rank that had one before MPI started."""
    for rank, failure in enumerate(failures):
        if failure is not None:
            code, line = failure
            error = FedmpiError(_of_rank(rank, line))
            error.exit_code, error.agreed = code, True
            raise error


def _of_rank(rank: int, line: str) -> str:
    """Return what a rank says with its number before it; rank 0's as it is."""
    return f"rank {rank}: {line}" if rank and not line.startswith("rank ") else line


def _library() -> str:
    """Return name and version of the MPI library, in one line."""
    first = MPI.Get_library_version().replace("\0", "").strip().splitlines()[0]
    return " ".join(first.split())


_OUT_OF_MEMORY = "can't allocate memory", "out of memory"


def abort(error: BaseException) -> NoReturn:
    """Print the traceback and end every rank of the job at once with exit code 1.

    Where memory did not suffice, a call of MPI failed, or Ctrl-C ended the command, it is one line.
    """
    if isinstance(error, Stopped):
        leave()
    rank = MPI.COMM_WORLD.rank
    if isinstance(error, MemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY):
        reason = f"rank {rank} has not enough memory"
        place, advice = socket.gethostname(), "take a smaller model or batch, or more ranks on more nodes"
        complain(f"rank {rank} on {place} has not enough memory: {advice}")
    elif isinstance(error, MPI.Exception):
        reason = f"rank {rank}: a call of MPI failed: another rank has died, or the network has failed"
        complain(f"{reason} ({visible_lines(str(error)).splitlines()[0]})")
    else:
        reason = f"rank {rank}: {type(error).__name__}: {error}"
        text = "".join(traceback.format_exception(error))
        sys.stderr.write(f"rank {rank} failed:\n{visible_lines(text)}")
    alarm.tell(MPI.COMM_WORLD, 1, reason, printed=True)
    _end(1)


def _end(code: int) -> NoReturn:
    sys.stderr.flush()
    sys.stdout.flush()
    if MPI.COMM_WORLD.size > 1:
        time.sleep(0.1)  # lets the launcher forward the message before MPI aborts
        MPI.COMM_WORLD.Abort(code)
    sys.exit(code)
