"""Compilation of kernels by numba, cached on disk by the content of their sources."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numba
from numba import config, njit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_FAST = {"contract", "nsz"}
"""Products may be contracted with sums (FMA); nothing is reordered, so the sources decide the results."""


def compiled(function: Kernel) -> Kernel:
    """Compile a kernel when it is first called, or take it from the cache.

    Numba notices only changes of a kernel's own file, not of what it calls; the
    cache's folder therefore bears a digest of all sources in this package. A kernel
    elsewhere may call compiled functions of its own file and of this package only.
    """
    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(_folder())
    try:
        decorate: Any = njit(cache=True, fastmath=_FAST, error_model="numpy")
        return decorate(function)  # type: ignore[no-any-return]
    finally:
        settings.CACHE_DIR = before


@cache
def _folder() -> Path:
    """Return the cache's folder: in the user's cache, or a temporary one where that cannot be written."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    text = b"".join(source.read_bytes() for source in sources)
    about = f"{numba.__version__} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    name = hashlib.blake2b(text + about.encode(), digest_size=8).hexdigest()
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "fedmpi" / "kernels" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.gettempdir()) / f"fedmpi-kernels-{os.getuid()}-{name}"
