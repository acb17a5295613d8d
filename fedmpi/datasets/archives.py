"""Members of an archive of somebody else: nothing is unpacked to disk or unpickled, sizes are bounded."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from fedmpi.datasets.bounds import too_large, undamaged
from fedmpi.errors import BadInput

MOST_BYTES = 1 << 28
"""Of all members together once unpacked; the largest of the networks, Coauthor-Physics, has 14 MB."""


@contextmanager
def opened(
    path: Path, names: Sequence[str], others: Sequence[str] = (), most: int = MOST_BYTES
) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """Open an archive and find members, whatever their folder; no more of them is unpacked than they say.

    Parameters
    ----------
    path : Path
    names, others : sequence of str
        Members that must be there, and that may be.
    most : int
        Bytes that these may have together.

    Raises
    ------
    BadInput
        Cut short or damaged, here or while the archive is open; a member is missing, or they are too large.
    """
    with undamaged(path), zipfile.ZipFile(path) as archive:
        by_name = {info.filename.rsplit("/", 1)[-1]: info for info in archive.infolist()}
        for name in names:
            if name not in by_name:
                raise BadInput(f"{path} holds no {name}: get it anew")
        found = {name: by_name[name] for name in (*names, *others) if name in by_name}
        size = path.stat().st_size
        for info in found.values():
            if info.header_offset + info.compress_size > size:
                raise zipfile.BadZipFile(f"{info.filename} reaches past the end")
        if sum(info.file_size for info in found.values()) > most:
            raise BadInput(too_large(str(path), most))
        yield archive, found


def read_arrays(path: Path, names: Sequence[str], dimensions: int = 1) -> list[npt.NDArray[Any]]:
    """Return some arrays of numbers with so many dimensions.

    Raises
    ------
    BadInput
        As `opened`; or an array holds no numbers or has other dimensions.
    """
    with opened(path, [f"{name}.npy" for name in names]) as (archive, members):
        return [_array(archive.read(info), dimensions, f"{path}: {name}") for name, info in members.items()]


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
