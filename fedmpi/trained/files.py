"""A trained model as two files: its tensors, and beside them a JSON of what builds the network again."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path

import torch
from pydantic import ValidationError
from torch import Tensor

from fedmpi.errors import BadInput
from fedmpi.store import disk
from fedmpi.store.stored import in_words
from fedmpi.trained.about import About
from fedmpi.trained.model import TrainedModel

SUFFIXES = (".safetensors", ".pt")
"""Of the file of tensors: Hugging Face's format, or torch's state dict, which loads with ``weights_only``."""


def save(model: TrainedModel, path: Path) -> None:
    """Write a model's tensors, and ``NAME.json`` beside them.

    Raises
    ------
    BadInput
        See `check_name`; or it cannot be written.
    """
    check_name(path)
    state = {name: each.detach().cpu().clone() for name, each in model.network.state_dict().items()}
    about = path.with_suffix(".json")
    try:
        disk.write_whole(path, _packed(path, state))
        disk.write_whole(about, model.about.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise BadInput(f"{path}: cannot write it ({error.strerror})") from error


def load(path: Path) -> TrainedModel:
    """Return the model of a file that `save` wrote; nothing in it is executed.

    Raises
    ------
    BadInput
        One of the two files is missing, damaged or not of the other; or a plug-in is missing.
    """
    check_name(path)
    about = path.with_suffix(".json")
    try:
        known, content = About.model_validate_json(about.read_bytes()), path.read_bytes()
    except OSError as error:
        raise BadInput(f"{error.filename}: cannot read it ({error.strerror})") from error
    except ValidationError as error:
        raise BadInput(f"{about}: {in_words(error)}") from error
    try:
        return TrainedModel(known, _unpacked(path, content))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except ValidationError as error:
        raise BadInput(f"{about}: model: {in_words(error)}") from error
    except Exception as error:  # whatever torch or safetensors say of bytes that are not theirs
        text = " ".join(str(error).split())
        raise BadInput(f"{path}: damaged, or no model of {about.name} ({text[:120]})") from error


def check_name(path: Path) -> None:
    """Raise BadInput where a file's name has another ending, or safetensors is needed and missing."""
    if path.suffix not in SUFFIXES:
        raise BadInput(f"{path}: the name of a model must end in {' or '.join(SUFFIXES)}")
    if path.suffix == ".safetensors" and importlib.util.find_spec("safetensors") is None:
        raise BadInput(f"{path}: this format needs a library: pip install safetensors, or write a .pt")


def _packed(path: Path, state: dict[str, Tensor]) -> bytes:
    if path.suffix == ".safetensors":
        from safetensors.torch import save as packed

        return packed(state)
    content = io.BytesIO()
    torch.save(state, content)
    return content.getvalue()


def _unpacked(path: Path, content: bytes) -> dict[str, Tensor]:
    if path.suffix == ".safetensors":
        from safetensors.torch import load as unpacked

        return unpacked(content)
    found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    if not isinstance(found, dict):
        raise BadInput("it holds no state dict")
    return found
