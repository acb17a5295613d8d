"""A mode in which work that a GPU could not take in a capture raises."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_WAITING = {
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::masked_select",
    "aten::repeat_interleave.Tensor",
    "aten::equal",
    "aten::lift_fresh",
}
"""Operators that bring a value to the host or from it, or whose result has a size that depends on one."""


class OnDevice(TorchDispatchMode):
    """Refuses operators that wait for a device, and copies of what the host has: they are in no replay.

    What the host makes inside, such as a tensor of a list, is a copy on a GPU; so are moves between devices.
    """

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name, given = function.name(), kwargs or {}
        moved = name == "aten::_to_copy" and given.get("device") is not None
        chosen = name == "aten::index.Tensor" and any(each.dtype is torch.bool for each in args[1])
        if name in _WAITING or moved or chosen:
            raise AssertionError(f"{name} in what is captured")
        return function(*args, **(kwargs or {}))
