"""Reads a bundle of anybody: a compressed tar archive, none of whose sizes is believed."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fedmpi.errors import BadInput

MOST_BYTES = 64 << 30
"""Of all files together; a suite of 100 long runs of 256 clients has 11 GB."""

MOST_FILE_BYTES = 8 << 30
MOST_TEXT_BYTES = 256 << 20
MOST_FILES = 100_000
_PIECE = 1 << 20
_OF_NUMBERS = (ValueError, ArithmeticError, RecursionError)
_OF_BYTES = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, *_OF_NUMBERS)
"""What these modules raise where the bytes are not those of an archive."""

_MOST_AT_ONCE = 64 << 20
"""tarfile reads a header, of the size that the archive says, in one piece."""


@dataclass(frozen=True)
class Archive:
    """An archive open for reading: its plain files by their path below the bundle's folder."""

    path: Path
    tar: tarfile.TarFile
    members: dict[str, tarfile.TarInfo]

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file, in hexadecimal."""
        digest = hashlib.sha256()
        for piece in self._pieces(path):
            digest.update(piece)
        return digest.hexdigest()

    def unpack(self, path: str, target: Path) -> None:
        """Write a file's content to another place."""
        with target.open("wb") as stream:
            for piece in self._pieces(path):
                stream.write(piece)

    def content(self, path: str) -> bytes:
        """Return the content of a file that is read as a whole: an index, a table, a suite."""
        if self.members[path].size > MOST_TEXT_BYTES:
            raise BadInput(f"{self.path}: no bundle: {path} has over {MOST_TEXT_BYTES >> 20} MB")
        return b"".join(self._pieces(path))

    def _pieces(self, path: str) -> Iterator[bytes]:
        with _in_words(self.path):
            stream = self.tar.extractfile(self.members[path])
            assert stream is not None  # `_members` keeps plain files only
            with stream:
                while piece := stream.read(_PIECE):
                    yield piece


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open an archive for reading.

    Raises
    ------
    BadInput
        The file cannot be read, is no archive, or holds something else than plain files below one folder,
        one twice, or more than any bundle.
    """
    with ExitStack() as stack:
        with _in_words(path):
            if path.exists() and not path.is_file():  # a pipe would be waited for
                raise BadInput("no bundle: it is not a file")
            raw = stack.enter_context(path.open("rb"))
            unpacked = stack.enter_context(_Bounded(fileobj=raw, mode="rb"))
            tar = stack.enter_context(tarfile.TarFile(fileobj=unpacked, mode="r"))
            members = _members(tar)
        yield Archive(path, tar, members)


def _members(tar: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    found: dict[str, tarfile.TarInfo] = {}
    end = -1
    while (member := tar.next()) is not None:
        if member.offset <= end or len(found) >= MOST_FILES:  # a size below 0 leads back, and round again
            raise BadInput(f"no bundle: it leads back to its beginning, or has over {MOST_FILES} files")
        end = member.offset
        parts = PurePosixPath(member.name).parts
        if member.isdir():
            continue
        plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
        if not plain or ".." in parts or member.name.startswith("/") or len(parts) < 2:
            raise BadInput(f"no bundle: {member.name} is not a plain file below one folder")
        if not 0 <= member.size <= MOST_FILE_BYTES:
            raise BadInput(f"no bundle: {member.name} would have {member.size} bytes")
        path = "/".join(parts[1:])
        if path in found:
            raise BadInput(f"no bundle: {path} is in it twice")
        found[path] = member
    return found


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Turn whatever an archive of anybody's bytes ends in into one line."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except _OF_BYTES as error:
        detail = str(error).partition("\n")[0]
        raise BadInput(f"{path}: no bundle, or a damaged one ({detail})") from error
    except OSError as error:
        raise BadInput(f"{path}: cannot read it ({error.strerror or error})") from error


class _Bounded(gzip.GzipFile):
    """A stream of which no more than a bundle has is read, nor too much in one piece."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= _MOST_AT_ONCE:
            raise BadInput(f"no bundle: it has a header of over {_MOST_AT_ONCE >> 20} MB")
        _refuse_beyond(self.tell() + size)
        return super().read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        _refuse_beyond(offset)
        return super().seek(offset, whence)


def _refuse_beyond(end: int) -> None:
    if end > MOST_BYTES:
        raise BadInput(f"no bundle: unpacked it has over {MOST_BYTES >> 30} GiB; unpack it yourself")
