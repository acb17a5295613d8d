"""A client's personal model, for algorithms that train one beside the shared one."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedmpi.engine.optimizer import AdamState


@dataclass
class Personal:
    """A model that never leaves its client.

    Attributes
    ----------
    row : float32 [length]
        Its parameters, those that are not shared included.
    adam : AdamState
        Of its own training.
    """

    row: Tensor
    adam: AdamState
