"""The file of tensors that models start from (imports without torch)."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from pydantic import Field, model_validator

from fedmpi.config.options import Options
from fedmpi.errors import BadInput

SUFFIXES = (".safetensors", ".pt")
"""Of files of tensors: Hugging Face's format, or torch's state dict, which loads with ``weights_only``."""


class InitialOptions(Options):
    """The file of tensors that the server's model and all clients' models start from."""

    name: str = ""
    """File that fedmpi export --model wrote, or another state dict, .safetensors or .pt; empty: none."""
    tensors: tuple[str, ...] = Field((), strict=False)
    """Beginnings of the names of the tensors that are taken, others are drawn as always; by default all."""
    sha256: str = Field("", pattern="^([0-9a-f]{64})?$")
    """Of the file, which must be that one; by default of the file as it is when the run begins."""

    @model_validator(mode="after")
    def _refuse_no_file(self) -> InitialOptions:
        if not self.name and (self.tensors or self.sha256):
            raise ValueError("give the name of a file, too")
        return self

    def pinned(self) -> InitialOptions:
        """Return the same with the SHA-256 of the file as it is now, where none is stated.

        Raises
        ------
        BadInput
            See `content`.
        """
        if not self.name or self.sha256:
            return self
        return self.model_copy(update={"sha256": hashlib.sha256(self.content()).hexdigest()})

    def check(self) -> None:
        """Raise BadInput where there is a file that `content` refuses."""
        if self.name:
            self.content()

    def content(self) -> bytes:
        """Return the file's content.

        Raises
        ------
        BadInput
            It cannot be read, has another ending, or is not the stated one.
        """
        path = Path(self.name)
        try:
            check_name(path)
            if not path.is_file():
                raise BadInput(f"{path}: no such file")
            content = path.read_bytes()
            found = hashlib.sha256(content).hexdigest()
            if self.sha256 not in ("", found):
                raise BadInput(
                    f"{path} has changed: the run is of SHA-256 {self.sha256[:12]}, this is {found[:12]}"
                )
        except OSError as error:
            raise BadInput(f"initial: {path}: cannot read it ({error.strerror})") from error
        except BadInput as error:
            raise BadInput(f"initial: {error}") from None
        return content

    def takes(self, tensor: str) -> bool:
        """Return whether a tensor of this name is taken."""
        return not self.tensors or tensor.startswith(self.tensors)


def check_name(path: Path) -> None:
    """Raise BadInput where a file's name has another ending, or safetensors is needed and missing."""
    if path.suffix not in SUFFIXES:
        raise BadInput(f"{path}: the name of a model must end in {' or '.join(SUFFIXES)}")
    if path.suffix == ".safetensors" and importlib.util.find_spec("safetensors") is None:
        raise BadInput(f"{path}: this format needs the extra models: pip install safetensors, or use a .pt")
