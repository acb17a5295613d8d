"""What a round asks of a GPU, counted on the CPU: operators that compute, the bytes they move, FLOPs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from fedmpi.kernels.captured import LANES
from fedmpi.runs.reporting import RoundReport

FLOPS_PER_SECOND, BYTES_PER_SECOND = 67e12, 3.35e12
"""An H100 SXM's float32 outside its tensor cores, and its memory (NVIDIA's data sheet)."""

KERNEL_SECONDS = 2.8e-6
"""The mean kernel of `molecules` on an H100: 19 % of 166 ms over 11,296 (results/reference/gpu/h100.json)."""

_NO_KERNEL = ("aten::empty", "aten::new_empty", "aten::_unsafe_view", "aten::_local_scalar_dense")
"""Beside views."""


class Counted(TorchDispatchMode):
    """Counts operators that a GPU would run as a kernel or more, and the bytes of what they take and give.

    Attributes
    ----------
    kernels, moved_bytes : int
        An operator that reads some rows of a tensor counts with all of it.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kernels = self.moved_bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call an operator."""
        result = func(*args, **(kwargs or {}))
        if not func.is_view and not func.name().startswith(_NO_KERNEL):
            self.kernels += 1
            self.moved_bytes += sum(_sizes((args, kwargs, result)).values())
        return result


def _sizes(values: Any) -> dict[int, int]:
    """Return the bytes of all tensors in nested values, by object."""
    if isinstance(values, Tensor):
        return {id(values): values.nbytes}
    if isinstance(values, Mapping):
        values = list(values.values())
    parts = map(_sizes, values) if isinstance(values, list | tuple) else ()
    return {number: size for part in parts for number, size in part.items()}


def work_of(run_round: Callable[[], RoundReport], groups: int) -> dict[str, Any]:
    """Return what a round asks for, and an estimate of its seconds on an H100.

    Counted are the operators of the CPU. A GPU has some others, such as those of norms, and pads its batches.

    Parameters
    ----------
    run_round : callable
    groups : int
        Groups of clients; `LANES` of them run at once.

    Returns
    -------
    dict
        `flops` of the models, `bytes` that are moved, `kernels`, those `in_a_row`; `h100_seconds` by each
        of them, as if the others took none: no cache, all kernels of one length.
    """
    with Counted() as counted:
        results = run_round().results
    flops = sum(int(results[name].sum()) for name in ("model_flops", "evaluation_flops"))
    in_a_row = -(-counted.kernels // min(groups, LANES))
    return {
        "flops": flops,
        "bytes": counted.moved_bytes,
        "kernels": counted.kernels,
        "in_a_row": in_a_row,
        "h100_seconds": {
            "flops": flops / FLOPS_PER_SECOND,
            "bytes": counted.moved_bytes / BYTES_PER_SECOND,
            "kernels": in_a_row * KERNEL_SECONDS,
        },
    }
