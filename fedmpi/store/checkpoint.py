"""The checkpoint: one sealed file replaced as a whole, its predecessor kept."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import secrets
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fedmpi.store import disk
from fedmpi.store.schema import Array

NAME = "checkpoint"
PREVIOUS = "checkpoint.previous"
_META = "meta"
_LABEL = b"fedmpi checkpoint, SHA-256 of the bytes before: "
_DIGITS = 64
_CHUNK_BYTES = 1 << 20
_LOG = logging.getLogger(__name__)


class Meta(BaseModel):
    """Which run a checkpoint is of, and where in it.

    Attributes
    ----------
    rounds : int
        Rounds finished.
    config_digest : str
        `fedmpi.store.schema.config_digest` of the run's configuration.
    numerics_version : int
        That of the fedmpi that the run began with.
    begun : str
        When the run's record was begun (UTC).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rounds: int = Field(ge=1, le=1_000_000)
    config_digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    numerics_version: int = Field(ge=0, le=1_000_000)
    begun: str = Field(max_length=64)


@dataclass(frozen=True)
class Checkpoint:
    """What `save` was given: `meta`, and arrays of numbers by name."""

    meta: Meta
    arrays: Mapping[str, Array]


class Unfit(ValueError):
    """A checkpoint cannot be used; the message says why."""


def save(folder: Path, checkpoint: Checkpoint, confirm: Callable[[], None] = lambda: None) -> None:
    """Write a checkpoint; a kill at any moment leaves the new one or the former ones.

    Parameters
    ----------
    checkpoint : Checkpoint
        No array may be named "meta".
    confirm : callable
        Called when all is written and only the names are to change; what it raises leaves them as they are.

    Raises
    ------
    RunFailed
        It could not be written (disk full); the former checkpoints are untouched.
    """
    assert _META not in checkpoint.arrays
    text = np.frombuffer(checkpoint.meta.model_dump_json().encode(), dtype=np.uint8)
    for left in folder.glob(f"{NAME}.*.tmp"):  # of a process that was killed while it wrote
        left.unlink(missing_ok=True)
    fresh = folder / f"{NAME}.{secrets.token_hex(4)}.tmp"
    try:
        _write(fresh, {_META: text, **checkpoint.arrays})
        confirm()
        if (folder / NAME).exists():
            os.replace(folder / NAME, folder / PREVIOUS)
        os.replace(fresh, folder / NAME)
        disk.sync(folder)
    except OSError as error:
        raise disk.failure(folder / NAME, error) from error
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def _write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an uncompressed `.npz` whose comment is the seal, and wait until it is on disk."""
    with path.open("xb+") as file:
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            archive.comment = _LABEL + b"0" * _DIGITS
        size = file.seek(0, os.SEEK_END) - _DIGITS
        digest = _digest(file, size)
        file.seek(size)
        file.write(digest)
        file.flush()
        os.fsync(file.fileno())


def _digest(file: BinaryIO, size: int) -> bytes:
    """Return the SHA-256 of the first `size` bytes in hexadecimal."""
    state = hashlib.sha256()
    file.seek(0)
    while size > 0 and (chunk := file.read(min(size, _CHUNK_BYTES))):
        state.update(chunk)
        size -= len(chunk)
    return state.hexdigest().encode()


def load(folder: Path, check: Callable[[Checkpoint], None]) -> Checkpoint | None:
    """Return the newest checkpoint that is whole and passes `check`; others are passed over with a warning.

    None means that there is none: the run starts again from its first round, and what it
    recomputes is compared with the record.

    Parameters
    ----------
    check : callable
        Raises `Unfit` for a checkpoint that is not this run's.
    """
    for name in (NAME, PREVIOUS):
        path = folder / name
        try:
            found = _read(path)
            check(found)
            return found
        except FileNotFoundError:
            continue
        except Exception as error:  # whatever is wrong with it, the run can go on without it
            _LOG.warning("%s is passed over: %s", path, _in_one_line(error))
    return None


def _read(path: Path) -> Checkpoint:
    """Return what a file holds; nothing of it is believed before its seal."""
    if path.exists() and not path.is_file():
        raise Unfit("it is no file")
    arrays: dict[str, Array] = {}
    with path.open("rb") as file:
        _refuse_broken_seal(file)
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                content = io.BytesIO(archive.read(name))
                arrays[name.removesuffix(".npy")] = np.lib.format.read_array(content, allow_pickle=False)
    meta = Meta.model_validate_json(arrays.pop(_META).tobytes())
    return Checkpoint(meta, arrays)


def _refuse_broken_seal(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END) - _DIGITS
    start = max(size - len(_LABEL), 0)
    file.seek(start)
    if file.read(size - start if size > 0 else 0) != _LABEL:
        raise Unfit("it carries no digest: it was cut short, or an older fedmpi wrote it")
    if file.read() != _digest(file, size):
        raise Unfit("it is damaged: its digest is another one")


def _in_one_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", f"{error}" or type(error).__name__)[:200]
