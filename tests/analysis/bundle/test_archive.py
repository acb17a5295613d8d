"""No archive makes `fedmpi records verify` read, keep or write more than a bundle has."""

import gzip
import io
import os
import tarfile

import pytest

from fedmpi.analysis.bundle import archive
from fedmpi.analysis.bundle.archive import opened
from fedmpi.errors import BadInput


def make(path, *members):
    """Write a compressed archive of raw headers, each with so many bytes of zeros."""
    with gzip.open(path, "wb") as stream:
        for header, num_bytes in members:
            stream.write(header + bytes(-num_bytes % 512 + num_bytes))
        stream.write(bytes(1024))
    return path


def header(name, size, kind=tarfile.REGTYPE):
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def refused(path):
    with pytest.raises(BadInput) as error, opened(path):
        pass
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{path}: ")


@pytest.fixture
def small(monkeypatch):
    """Bounds that a test can reach."""
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(archive, "MOST_FILES", 50)
    monkeypatch.setattr(archive, "_MOST_AT_ONCE", 1 << 16)


KINDS = (tarfile.GNUTYPE_SPARSE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)
NOT_PLAIN = "no bundle: a/b is not a plain file below one folder"
TOO_LARGE = archive.MOST_FILE_BYTES + 1


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([(header(f"a/{n}", 1 << 18), 1 << 18) for n in range(5)], "no bundle: unpacked it has over 0 GiB"),
        ([(header("a/b", TOO_LARGE), 0)], f"no bundle: a/b would have {TOO_LARGE} bytes"),
        ([(header(f"a/{number}", 0), 0) for number in range(51)], "or has over 50 files"),
        ([(header("a/b", 1 << 19, tarfile.XHDTYPE), 1 << 19)], "no bundle: it has a header of over 0 MB"),
        ([(header("a/b", -512), 0), (header("a/c", 0), 0)], "no bundle: a/b would have -512 bytes"),
        *(([(header("a/b", 0, kind), 0)], NOT_PLAIN) for kind in KINDS),
        ([(header("a/b", 0), 0), (header("a/b", 0), 0)], "no bundle: b is in it twice"),
    ],
)
def test_what_no_bundle_has_is_refused_before_it_is_read(small, tmp_path, members, words):
    assert words in refused(make(tmp_path / "x", *members))


def test_its_files_are_read_in_full(tmp_path):
    with tarfile.open(tmp_path / "x", "w:gz") as target:
        for name, content in (("a/b", b"one"), ("a/c/d", b"two" * 1000)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            target.addfile(member, io.BytesIO(content))
    with opened(tmp_path / "x") as found:
        assert found.content("b") == b"one"
        found.unpack("c/d", tmp_path / "d")
    assert (tmp_path / "d").read_bytes() == b"two" * 1000


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe") == "no bundle: it is not a file"
