"""HDF5 files without HDF5's locks: `fedmpi.store.lock` keeps a run's folder, and needs none of the system's.

Lustre mounted without flock, NFS without lockd and DVS refuse file locks (h5py 1082 and 1101, HDF5 3311).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

__all__ = ["h5py", "open_file"]

_ENVIRONMENT = "HDF5_USE_FILE_LOCKING"
"""HDF5 reads it once, when it is loaded, and follows it rather than what opens a file."""

_given = os.environ.pop(_ENVIRONMENT, None)
import h5py  # noqa: E402

if _given is not None:
    os.environ[_ENVIRONMENT] = _given


def open_file(path: Path, mode: Literal["r", "r+", "x"], **settings: Any) -> h5py.File:
    """Open or make an HDF5 file without locking it.

    Raises
    ------
    OSError
        It cannot be opened.
    """
    return h5py.File(path, mode, locking=False, **settings)
