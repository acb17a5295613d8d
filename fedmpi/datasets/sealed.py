"""Folders of arrays with digests: content that does not fit its digest is not used."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedmpi.datasets import stamps
from fedmpi.errors import BadInput

FORMAT: Literal[2] = 2
_SEAL = "meta.json"
_MOST_SEAL_BYTES = 1 << 26
_SMALL_BYTES = 1 << 16

Array = npt.NDArray[Any]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _File(BaseModel):
    """Size and digest of one file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    bytes: int = Field(ge=0)
    sha256: Sha256


class _Seal(BaseModel):
    """Manifest of a folder: facts, and array files by name; `sha256` is of both."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[2]
    facts: dict[str, Any]
    files: dict[Annotated[str, Field(pattern=r"^[a-z_]+$")], _File]
    sha256: Sha256


@dataclass(frozen=True)
class Sealed:
    """Content of a sealed folder: JSON values by name, and arrays by name, large ones mapped, read-only."""

    facts: dict[str, Any]
    arrays: dict[str, Array]


def read(folder: Path) -> Sealed | None:
    """Return what `write` put there; None where it is absent, damaged or of another format.

    The content of every file is compared with its digest, once on each machine for each state of the file
    (`fedmpi.datasets.stamps`).
    """
    seal = _seal(folder)
    if seal is None or not intact(folder):
        return None
    return Sealed(seal.facts, {name: _array(folder, name, file.bytes) for name, file in seal.files.items()})


def _array(folder: Path, name: str, size: int) -> Array:
    mode: Literal["r"] | None = "r" if size > _SMALL_BYTES else None
    return np.asarray(np.load(folder / f"{name}.npy", mmap_mode=mode, allow_pickle=False))


def facts(folder: Path) -> dict[str, Any] | None:
    """Return the facts of a folder whose files are all there; their content is not verified."""
    seal = _seal(folder)
    return None if seal is None else seal.facts


def intact(folder: Path) -> bool:
    """Return whether all files of a folder fit their digests."""
    seal = _seal(folder)
    if seal is None:
        return False
    return stamps.agree({folder / f"{name}.npy": file.sha256 for name, file in seal.files.items()})


def _seal(folder: Path) -> _Seal | None:
    path = folder / _SEAL
    try:
        if not path.is_file() or path.stat().st_size > _MOST_SEAL_BYTES:
            return None
        seal = _Seal.model_validate_json(path.read_bytes())
        sizes = {name: (folder / f"{name}.npy").stat().st_size for name in seal.files}
    except (OSError, ValidationError):
        return None
    whole = seal.sha256 == _digest(seal.facts, seal.files)
    return seal if whole and sizes == {name: file.bytes for name, file in seal.files.items()} else None


def _digest(facts: Mapping[str, Any], files: Mapping[str, _File]) -> str:
    described = {name: file.model_dump() for name, file in files.items()}
    text = json.dumps([FORMAT, facts, described], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def write(folder: Path, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
    """Write a folder; it appears under its name only when complete.

    Two processes may write the same one at once: the first to finish wins, the other's copy
    is dropped. What is there already and not intact makes room.

    Parameters
    ----------
    arrays : mapping
        By names of small letters and underscores.
    facts : mapping
        JSON values.

    Raises
    ------
    BadInput
        The folder cannot be written.
    """
    scratch = scratch_name(folder)
    try:
        scratch.mkdir(parents=True)
        _fill(scratch, arrays, json.loads(json.dumps(facts)))
        _publish(scratch, folder)
    except OSError as error:
        raise BadInput(
            f"cannot write the data cache {folder}: {error.strerror or error}; "
            "free the space or choose another place with FEDMPI_DATA"
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _fill(folder: Path, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
    files = {}
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        np.save(path, array)
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        files[name] = _File(bytes=path.stat().st_size, sha256=digest)
    seal = _Seal(format=FORMAT, facts=dict(facts), files=files, sha256=_digest(facts, files))
    (folder / _SEAL).write_text(seal.model_dump_json(indent=1))


def scratch_name(target: Path) -> Path:
    """Return a fresh hidden name beside `target`, on the same file system."""
    return target.parent / f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}"


def _publish(scratch: Path, folder: Path) -> None:
    """Rename a complete folder into place, unless what is there already is intact; else that makes room.

    Raises
    ------
    OSError
        It cannot be renamed, and no other process has put an intact one there.
    """
    try:
        scratch.rename(folder)
        return
    except OSError:
        if intact(folder):
            return
        if not folder.exists():
            raise
    old = scratch_name(folder)
    try:
        folder.rename(old)  # partial, damaged, or of an older format
        scratch.rename(folder)
    except OSError:
        if not intact(folder):
            raise
    finally:
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)
