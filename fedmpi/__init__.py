"""fedmpi: an MPI-parallel benchmark suite for federated learning on graphs.

In Python: `run`, `load`, `compare` and `load_model` (docs/python.md).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedmpi.api import compare, load, load_model, run

__all__ = ["NUMERICS_VERSION", "__version__", "compare", "load", "load_model", "run"]

__version__ = "0.1.0"
NUMERICS_VERSION = 2
"""Raised by every change that moves a bit of a result; stored in each record."""


def __getattr__(name: str) -> Any:
    """Import what is for users when it is first asked for: every rank imports this module."""
    if name in ("compare", "load", "load_model", "run"):
        return getattr(importlib.import_module("fedmpi.api"), name)
    raise AttributeError(f"module 'fedmpi' has no attribute '{name}'")
