"""A client's update as a vector, on the host or on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

Row = npt.NDArray[np.float32]
Delta = Row | Tensor
"""A vector of shared parameters, float32 [shared]."""


def on_host(row: Any) -> Any:
    """Return a row as a NumPy array, wherever it is."""
    return row.cpu().numpy() if isinstance(row, Tensor) else row
