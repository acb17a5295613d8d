"""Arrays of a NumPy archive (``.npz``) that somebody else wrote: nothing is unpickled, sizes are bounded."""

from __future__ import annotations

import io
import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from fedmpi.datasets.bounds import too_large
from fedmpi.errors import BadInput

MOST_BYTES = 1 << 28
"""Of all arrays together once unpacked; the largest known set, Coauthor-Physics, has 14 MB."""

_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError),
    *(RuntimeError, ValueError, IndexError, KeyError, TypeError, MemoryError, struct.error),
    *(SyntaxError, tokenize.TokenError),
)


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive; damage becomes `BadInput`."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except BadInput:
        raise
    except _DAMAGE as error:
        raise BadInput(f"{path} is cut short or damaged: {error}; get it anew") from error


def check_arrays(path: Path, names: Sequence[str]) -> None:
    """Check, without unpacking, that an archive is whole and holds the arrays needed.

    Raises
    ------
    BadInput
        Cut short or damaged, an array is missing, or they are larger than `MOST_BYTES` together.
    """
    with _archive(path) as archive:
        _members(archive, path, names)


def _members(archive: zipfile.ZipFile, path: Path, names: Sequence[str]) -> list[zipfile.ZipInfo]:
    by_name = {info.filename: info for info in archive.infolist()}
    for name in names:
        if f"{name}.npy" not in by_name:
            raise BadInput(f"{path} holds no array {name}: get it anew")
    found = [by_name[f"{name}.npy"] for name in names]
    size = path.stat().st_size
    for info in found:
        if info.header_offset + info.compress_size > size:
            raise zipfile.BadZipFile(f"{info.filename} reaches past the end")
    if sum(info.file_size for info in found) > MOST_BYTES:  # no more of a member is unpacked
        raise BadInput(too_large(str(path), MOST_BYTES))
    return found


def read_arrays(path: Path, names: Sequence[str]) -> list[npt.NDArray[Any]]:
    """Return some arrays of one dimension; checksums are verified.

    Raises
    ------
    BadInput
        As `check_arrays`; or an array holds no numbers or has several dimensions.
    """
    with _archive(path) as archive:
        return [
            _array(archive.read(info), f"{path}: {info.filename}") for info in _members(archive, path, names)
        ]


def _array(content: bytes, where: str) -> npt.NDArray[Any]:
    """Return the array of an ``.npy`` file; its header's size must be true."""
    stream = io.BytesIO(content)
    version = npy.read_magic(stream)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    if dtype.kind not in "iuf" or len(shape) != 1:
        raise BadInput(f"{where}: must be numbers in one dimension, not {dtype} of shape {shape}")
    numbers = memoryview(content)[stream.tell() :]
    if shape[0] * dtype.itemsize != len(numbers):
        raise ValueError(f"{where} has {len(numbers)} bytes of numbers, not {shape[0]} of {dtype}")
    return np.frombuffer(numbers, dtype)


def whole_numbers(array: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    """Return an array of whole numbers, or raise BadInput."""
    if array.dtype.kind == "f":
        raise BadInput(f"{where}: must be whole numbers, not {array.dtype}")
    return array
