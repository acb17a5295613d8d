"""Arrays in an archive (``.npz`` or ``.zip``) of somebody else: nothing is unpickled, sizes are bounded."""

from __future__ import annotations

import io
import lzma
import math
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


def check_members(path: Path, names: Sequence[str]) -> None:
    """Check, without unpacking, that an archive is whole and holds the members needed.

    Raises
    ------
    BadInput
        Cut short or damaged, a member is missing, or they are larger than `MOST_BYTES` together.
    """
    with _archive(path) as archive:
        _members(archive, path, names)


def check_arrays(path: Path, names: Sequence[str]) -> None:
    """Check, as `check_members`, that an archive holds arrays of these names."""
    check_members(path, [f"{name}.npy" for name in names])


def _members(archive: zipfile.ZipFile, path: Path, names: Sequence[str]) -> list[zipfile.ZipInfo]:
    by_name = {info.filename: info for info in archive.infolist()}
    for name in names:
        if name not in by_name:
            raise BadInput(f"{path} holds no {name}: get it anew")
    found = [by_name[name] for name in names]
    size = path.stat().st_size
    for info in found:
        if info.header_offset + info.compress_size > size:
            raise zipfile.BadZipFile(f"{info.filename} reaches past the end")
    if sum(info.file_size for info in found) > MOST_BYTES:  # no more of a member is unpacked
        raise BadInput(too_large(str(path), MOST_BYTES))
    return found


def read_members(path: Path, names: Sequence[str]) -> list[bytes]:
    """Return the content of some members; checksums are verified.

    Raises
    ------
    BadInput
        As `check_members`.
    """
    with _archive(path) as archive:
        return [archive.read(info) for info in _members(archive, path, names)]


def read_arrays(path: Path, names: Sequence[str], dimensions: int = 1) -> list[npt.NDArray[Any]]:
    """Return some arrays of numbers with so many dimensions.

    Raises
    ------
    BadInput
        As `check_members`; or an array holds no numbers or has other dimensions.
    """
    files = [f"{name}.npy" for name in names]
    with _archive(path) as archive:
        members = _members(archive, path, files)
        return [_array(archive.read(info), dimensions, f"{path}: {info.filename}") for info in members]


def _array(content: bytes, dimensions: int, where: str) -> npt.NDArray[Any]:
    """Return the array of an ``.npy`` file; its header's size must be true."""
    stream = io.BytesIO(content)
    version = npy.read_magic(stream)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_columns, dtype = read_header(stream)
    if dtype.kind not in "iuf" or len(shape) != dimensions or min(shape) < 0:
        raise BadInput(f"{where}: must be numbers in {dimensions} dimensions, not {dtype} of shape {shape}")
    numbers = memoryview(content)[stream.tell() :]
    if math.prod(shape) * dtype.itemsize != len(numbers):
        raise ValueError(f"{where} has {len(numbers)} bytes of numbers, not {shape} of {dtype}")
    return np.frombuffer(numbers, dtype).reshape(shape, order="F" if by_columns else "C")


def whole_numbers(array: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    """Return an array of whole numbers, or raise BadInput."""
    if array.dtype.kind == "f":
        raise BadInput(f"{where}: must be whole numbers, not {array.dtype}")
    return array
