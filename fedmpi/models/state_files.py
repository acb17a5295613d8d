"""State dicts as the content of files: safetensors, or torch's own."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Mapping
from contextlib import suppress

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
    found: object = None
    if suffix == ".safetensors":
        from safetensors.torch import load

        found = load(content)
    else:
        with warnings.catch_warnings(), suppress(pickle.UnpicklingError):
            warnings.simplefilter("ignore")  # such as of files that other versions of torch wrote
            found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    if not isinstance(found, dict) or not all(_is_plain(name, each) for name, each in found.items()):
        raise BadInput("it holds no state dict")
    return found


def _is_plain(name: object, value: object) -> bool:
    """Return whether a value is a dense tensor of numbers with a name, and has all elements that it shows."""
    if not isinstance(name, str) or not isinstance(value, Tensor) or value.layout != torch.strided:
        return False
    if value.device.type != "cpu" or value.is_complex():
        return False
    return value.numel() * value.element_size() <= value.untyped_storage().nbytes()
