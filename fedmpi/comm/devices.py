"""Which device a rank computes on."""

from __future__ import annotations

import os

import torch

from fedmpi.errors import BadInput


def choose(name: str, local_rank: int) -> torch.device:
    """Return the device of a rank: ``cpu``, or with ``cuda`` the GPU of its node-local rank, round robin.

    All GPUs of a node may be visible to each rank, or one to each; CUDA_VISIBLE_DEVICES orders them by
    numbers or UUIDs. Of MIG names CUDA shows a process the first alone, so a rank keeps its own name there.
    The GPU becomes this process's current one, whose streams and events torch takes.

    Raises
    ------
    BadInput
        ``cuda`` is asked for and torch sees no GPU.
    """
    if name == "cpu":
        return torch.device("cpu")
    _keep_own_part(local_rank)
    if not torch.cuda.is_available():
        raise BadInput(
            'device = "cuda", but torch sees no GPU here; use "cpu", or a CUDA or ROCm build of torch'
        )
    device = torch.device("cuda", local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def _keep_own_part(local_rank: int) -> None:
    """Take the MIG name of a rank from CUDA_VISIBLE_DEVICES, before CUDA reads it."""
    names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    if any(name.startswith("MIG-") for name in names):
        os.environ["CUDA_VISIBLE_DEVICES"] = names[local_rank % len(names)]


def describe(device: torch.device) -> str:
    """Return the name of a device for the provenance."""
    return "cpu" if device.type == "cpu" else f"{device}: {torch.cuda.get_device_name(device)}"
