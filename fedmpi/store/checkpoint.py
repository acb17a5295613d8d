"""Checkpoints: a sealed file by each rank, and a sealed manifest that names them, replaced as a whole."""

from __future__ import annotations

import hashlib
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, BinaryIO

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from fedmpi.errors import FedmpiError
from fedmpi.store import disk
from fedmpi.store.schema import Array

FOLDER = "checkpoints"
NAMES = ("manifest", "manifest.previous")
"""Manifests, the newest first."""

_FRESH = "manifest.tmp"
_LABEL = b"fedmpi checkpoint, SHA-256 of the bytes before: "
_DIGITS = 64
_CHUNK_BYTES = 1 << 20
_MOST_BYTES = 1 << 28
"""Of a manifest: ten digits and a comma for each of many million clients."""
_FILE = re.compile(r"[0-9a-f]{8}-[0-9]{7}\.(server|rank-[0-9]{1,7})")

_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_FileName = Annotated[str, StringConstraints(pattern=f"^{_FILE.pattern}$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Meta(_Frozen):
    """Run and round of a checkpoint.

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

    rounds: int = Field(ge=1, le=1_000_000)
    config_digest: _Digest
    numerics_version: int = Field(ge=0, le=1_000_000)
    begun: str = Field(max_length=64)


class Part(_Frozen):
    """A file, the digest that it is sealed with, and the clients whose states it holds, in that order."""

    file: _FileName
    sha256: _Digest
    clients: list[Annotated[int, Field(ge=0)]] = []


class Manifest(_Frozen):
    """What a checkpoint consists of: the server's file, and one of each rank that hosts clients."""

    meta: Meta
    server: Part
    parts: list[Part]


class Unfit(FedmpiError):
    """A checkpoint cannot be used; the message says why."""


def file_name(token: str, rounds: int, rank: int | None) -> str:
    """Return the name of a rank's file, or of the server's (None), unlike those of all other attempts."""
    return f"{token[:8]}-{rounds:07d}.{'server' if rank is None else f'rank-{rank}'}"


def write(path: Path, arrays: Mapping[str, Array]) -> str:
    """Write a part and return its digest when it is on disk.

    Raises
    ------
    RunFailed
        It could not be written (disk full); nothing of it stays.
    """
    try:
        with path.open("xb+") as file:
            try:
                digest = _write_sealed(file, arrays)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        disk.sync(path.parent)
    except OSError as error:
        raise disk.failure(path, error) from error
    return digest


def _write_sealed(file: BinaryIO, arrays: Mapping[str, Array]) -> str:
    """Write an uncompressed `.npz` whose comment is the seal, and wait until it is on disk."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        archive.comment = _LABEL + b"0" * _DIGITS
    size = file.seek(0, os.SEEK_END) - _DIGITS
    digest = _digest(file, size)
    file.seek(size)
    file.write(digest.encode())
    file.flush()
    os.fsync(file.fileno())
    return digest


def _digest(file: BinaryIO, size: int) -> str:
    """Return the SHA-256 of the first `size` bytes in hexadecimal."""
    state = hashlib.sha256()
    file.seek(0)
    while size > 0 and (chunk := file.read(min(size, _CHUNK_BYTES))):
        state.update(chunk)
        size -= len(chunk)
    return state.hexdigest()


def save(folder: Path, manifest: Manifest, confirm: Callable[[], None] = lambda: None) -> None:
    """Make a checkpoint whose parts are on disk the newest; the one before stays, older ones go.

    A kill at any moment leaves the new one or the former ones.

    Parameters
    ----------
    folder : Path
        `FOLDER` of the run.
    manifest : Manifest
    confirm : callable
        Called when all is written and only the names are to change; what it raises leaves them as they are.

    Raises
    ------
    RunFailed
        It could not be written; the former checkpoints are untouched.
    """
    text, newest, fresh = manifest.model_dump_json().encode(), folder / NAMES[0], folder / _FRESH
    try:
        with fresh.open("wb") as file:
            file.write(text + b"\n" + hashlib.sha256(text).hexdigest().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        confirm()
        if newest.exists():
            os.replace(newest, folder / NAMES[1])
        os.replace(fresh, newest)
        disk.sync(folder)
    except OSError as error:
        raise disk.failure(newest, error) from error
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
    clear(folder)


def clear(folder: Path) -> None:
    """Remove the files that no manifest names, as killed processes leave them."""
    with suppress(OSError):
        named = b""
        for name in NAMES:
            with suppress(FileNotFoundError), disk.open_plain(folder / name) as file:
                named += file.read(_MOST_BYTES)
        for path in folder.iterdir():
            left = _FILE.fullmatch(path.name) and path.name.encode() not in named
            if left or path.name == _FRESH:
                path.unlink(missing_ok=True)


def remove(folder: Path) -> None:
    """Remove a folder of checkpoints; what does not belong to them stays."""
    with suppress(OSError):
        for name in NAMES:
            (folder / name).unlink(missing_ok=True)
        clear(folder)
        folder.rmdir()


def read_manifest(folder: Path, name: str, num_clients: int) -> Manifest | None:
    """Return one of the manifests `NAMES`; None where there is none.

    Raises
    ------
    Unfit
        It is damaged, or does not name every client once.
    """
    try:
        with disk.open_plain(folder / name) as file:
            text, _, seal = file.read(_MOST_BYTES).partition(b"\n")
        if seal != hashlib.sha256(text).hexdigest().encode() + b"\n":
            raise Unfit("it is damaged: its digest is another one")
        found = Manifest.model_validate_json(text)
    except FileNotFoundError:
        return None
    except Exception as error:  # whatever is wrong with it, the run can go on without it
        raise Unfit(_in_one_line(error)) from None
    if sorted(client for part in found.parts for client in part.clients) != list(range(num_clients)):
        raise Unfit("its files have other clients than this run")
    return found


def read(folder: Path, part: Part) -> dict[str, Array]:
    """Return the arrays of a file after its digest is verified.

    Raises
    ------
    Unfit
        It is missing or damaged, or another file than the manifest says.
    """
    arrays: dict[str, Array] = {}
    try:
        with disk.open_plain(folder / part.file) as file:
            _refuse_other_seal(file, part.sha256)
            with zipfile.ZipFile(file) as archive:
                for name in archive.namelist():
                    content = io.BytesIO(archive.read(name))
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(content, allow_pickle=False)
    except FileNotFoundError:
        raise Unfit(f"{part.file} is missing") from None
    except Exception as error:
        raise Unfit(f"{part.file}: {_in_one_line(error)}") from None
    return arrays


def read_states(
    folder: Path, manifest: Manifest, clients: Iterable[int]
) -> dict[int, npt.NDArray[np.float32]]:
    """Return the states of some clients, from the files that hold them.

    Raises
    ------
    Unfit
        One of these files cannot be used.
    """
    wanted, found = set(clients), {}
    for part in manifest.parts:
        if not wanted.intersection(part.clients):
            continue
        arrays = read(folder, part)
        states, sizes = arrays.get("states"), arrays.get("sizes")
        if states is None or sizes is None or not _are_divided(states, sizes, len(part.clients)):
            raise Unfit(f"{part.file} does not hold the states of its clients")
        for client, state in zip(part.clients, np.split(states, np.cumsum(sizes)[:-1]), strict=True):
            if client in wanted:
                found[client] = state.copy()
    return found


def _are_divided(states: Array, sizes: Array, count: int) -> bool:
    """Return whether a vector consists of so many pieces of these sizes."""
    whole = states.ndim == 1 and sizes.shape == (count,) and sizes.dtype == np.int64
    return whole and bool((sizes >= 0).all()) and int(sizes.sum()) == len(states)


def _refuse_other_seal(file: BinaryIO, digest: str) -> None:
    size = file.seek(0, os.SEEK_END) - _DIGITS
    start = max(size - len(_LABEL), 0)
    file.seek(start)
    if file.read(size - start if size > 0 else 0) != _LABEL:
        raise Unfit("it carries no digest: it was cut short")
    seal = file.read().decode(errors="replace")
    if seal != digest or seal != _digest(file, size):
        raise Unfit("it is damaged: its digest is another one")


def _in_one_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", f"{error}" or type(error).__name__)[:200]
