"""State dicts as the content of files: safetensors, or torch's own."""

from __future__ import annotations

import io
from collections.abc import Mapping

import torch
from torch import Tensor

from fedmpi.errors import BadInput


def packed(state: Mapping[str, Tensor], suffix: str) -> bytes:
    """Return the content of a file with this ending, ``.safetensors`` or ``.pt``."""
    if suffix == ".safetensors":
        from safetensors.torch import save

        return save(dict(state))
    content = io.BytesIO()
    torch.save(dict(state), content)
    return content.getvalue()


def unpacked(content: bytes, suffix: str) -> dict[str, Tensor]:
    """Return the tensors of a file's content by name; nothing in it is executed.

    Raises
    ------
    BadInput
        It holds something else. What torch or safetensors raise of damaged bytes, they raise.
    """
    if suffix == ".safetensors":
        from safetensors.torch import load

        return load(content)
    found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    if not isinstance(found, dict) or not all(_is_dense(name, each) for name, each in found.items()):
        raise BadInput("it holds no state dict")
    return found


def _is_dense(name: object, value: object) -> bool:
    if not isinstance(name, str) or not isinstance(value, Tensor):
        return False
    return value.layout == torch.strided and value.device.type == "cpu"
