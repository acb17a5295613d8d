"""The checkpoint: one file replaced as a whole, its predecessor kept."""

from __future__ import annotations

import io
import json
import logging
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from fedmpi.store import disk
from fedmpi.store.schema import Array

NAME = "checkpoint"
PREVIOUS = "checkpoint.previous"
_META = "meta"
_LOG = logging.getLogger(__name__)


def save(folder: Path, meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a checkpoint; a kill at any moment leaves the new one or the former ones.

    Parameters
    ----------
    meta : mapping
        JSON values.
    arrays : mapping
        Arrays of numbers by name; "meta" is taken.

    Raises
    ------
    RunFailed
        It could not be written (disk full); the former checkpoints are untouched.
    """
    assert _META not in arrays
    text = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    fresh = folder / "checkpoint.tmp"
    try:
        _write(fresh, {_META: text, **arrays})
        if (folder / NAME).exists():
            os.replace(folder / NAME, folder / PREVIOUS)
        os.replace(fresh, folder / NAME)
        disk.sync(folder)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise disk.failure(folder / NAME, error) from error


def _write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an uncompressed `.npz` (readable by `numpy.load`) and wait until it is on disk."""
    with path.open("wb") as file:
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def load(folder: Path) -> tuple[dict[str, Any], dict[str, Array]] | None:
    """Return (meta, arrays) of the newest readable checkpoint.

    None means that there is none to be read: the run starts again from its first
    round, and what it recomputes is compared with the record.
    """
    for name in (NAME, PREVIOUS):
        path = folder / name
        try:
            return _read(path)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            _LOG.warning("%s is damaged (%s); going back to an older one", path, error)
    return None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    arrays: dict[str, Array] = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            content = io.BytesIO(archive.read(name))  # checks the member's CRC
            arrays[name.removesuffix(".npy")] = np.lib.format.read_array(content, allow_pickle=False)
    meta: dict[str, Any] = json.loads(arrays.pop(_META).tobytes())
    return meta, arrays
