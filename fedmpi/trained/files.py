"""A trained model as two files: its tensors, and beside them a JSON of what builds the network again."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from fedmpi.case.initial import check_name
from fedmpi.errors import BadInput
from fedmpi.models.state_files import packed, unpacked
from fedmpi.store import disk
from fedmpi.store.stored import in_words
from fedmpi.trained.about import About
from fedmpi.trained.model import TrainedModel


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
        disk.write_whole(path, packed(state, path.suffix))
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
        return TrainedModel(known, unpacked(content, path.suffix))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except Exception as error:  # whatever torch or safetensors say of bytes that are not theirs
        text = " ".join(str(error).split())
        raise BadInput(f"{path}: damaged, or no model of {about.name} ({text[:120]})") from error
