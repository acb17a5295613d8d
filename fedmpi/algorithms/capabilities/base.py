"""What all capabilities have in common (imports without torch)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.base import Floats

Bytes = npt.NDArray[np.uint8]
Reports = Mapping[str, Floats]
"""Columns of the clients' training reports by name."""

KERNELS = frozenset({"compiled", "grouped", "csr", "reference"})
ONE_BY_ONE = KERNELS - {"grouped"}
"""Kernels that train one client after another."""


class Capability:
    """Base of all capabilities."""

    runs_on: ClassVar[frozenset[str]] = KERNELS
    """Kernels that can do what the capability needs."""
