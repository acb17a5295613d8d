"""fedmpi: an MPI-parallel benchmark suite for federated learning on graphs."""

__version__ = "0.1.0"
NUMERICS_VERSION = 2
"""Raised by every change that moves a bit of a result; stored in each record."""
