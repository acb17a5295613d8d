"""Memory from which MPI sends updates and models: the host's, or the device's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fedmpi.case.reductions import ReductionOptions


@dataclass(frozen=True)
class Buffers:
    """What MPI is handed.

    Attributes
    ----------
    device : torch.device or None
        Where updates and models stay on their way to MPI; None: in host memory, as on rank 0 always.
    blocking : bool
        Whether all ranks use blocking calls: some GPU-aware MPIs take device memory in these only.
    """

    device: torch.device | None = None
    blocking: bool = False

    @classmethod
    def of(cls, options: ReductionOptions, device: torch.device, *, is_root: bool) -> Buffers:
        """Return those that a case asks for on a rank whose models live on `device`."""
        blocking = options.buffers == "device"
        return cls(device if blocking and not is_root else None, blocking)

    def ready(self, rows: Sequence[Any]) -> Any:
        """Return rows stacked where MPI shall find them, the device's work on them done."""
        if self.device is None:
            return np.stack(rows)
        stacked = torch.stack([torch.as_tensor(row, device=self.device) for row in rows])
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).synchronize()
        return stacked
