"""No archive makes `fedmpi records verify` read, keep or write more than a bundle has."""

import gzip
import io
import os
import tarfile

import pytest

from fedmpi.analysis.bundle import archive
from fedmpi.analysis.bundle.archive import Archive
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
    with pytest.raises(BadInput) as error, Archive(path):
        pass
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{path}: ")


@pytest.fixture
def small(monkeypatch):
    """Bounds that a test can reach."""
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(archive, "MOST_FILES", 50)
    monkeypatch.setattr(archive, "_MOST_AT_ONCE", 1 << 16)


def test_more_than_a_bundle_has_is_not_unpacked(small, tmp_path):
    members = [(header(f"a/{number}", 1 << 18), 1 << 18) for number in range(5)]
    assert refused(make(tmp_path / "x", *members)).startswith("no bundle: unpacked it has over 0 GiB")


def test_a_file_larger_than_any_record(tmp_path):
    size = archive.MOST_FILE_BYTES + 1
    assert refused(make(tmp_path / "x", (header("a/b", size), 0))) == (
        f"no bundle: a/b would have {size} bytes"
    )


def test_too_many_files(small, tmp_path):
    path = make(tmp_path / "x", *((header(f"a/{number}", 0), 0) for number in range(51)))
    assert "has over 50 files" in refused(path)


def test_a_header_of_any_size_is_not_read_into_memory(small, tmp_path):
    path = make(tmp_path / "x", (header("a/b", 1 << 19, tarfile.XHDTYPE), 1 << 19))
    assert refused(path) == "no bundle: it has a header of over 0 MB"


def test_a_size_below_zero_does_not_lead_round_and_round(tmp_path):
    path = make(tmp_path / "x", (header("a/b", -512), 0), (header("a/c", 0), 0))
    assert refused(path) == "no bundle: a/b would have -512 bytes"


def test_a_file_with_holes(tmp_path):
    assert refused(make(tmp_path / "x", (header("a/b", 0, tarfile.GNUTYPE_SPARSE), 0))) == (
        "no bundle: a/b is not a plain file below one folder"
    )


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices(tmp_path, kind):
    assert refused(make(tmp_path / "x", (header("a/b", 0, kind), 0))) == (
        "no bundle: a/b is not a plain file below one folder"
    )


def test_a_file_twice(tmp_path):
    assert refused(make(tmp_path / "x", (header("a/b", 0), 0), (header("a/b", 0), 0))) == (
        "no bundle: b is in it twice"
    )


def test_its_files_are_read_in_full(tmp_path):
    with tarfile.open(tmp_path / "x", "w:gz") as target:
        for name, content in (("a/b", b"one"), ("a/c/d", b"two" * 1000)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            target.addfile(member, io.BytesIO(content))
    with Archive(tmp_path / "x") as opened:
        assert opened.content("b") == b"one"
        opened.unpack("c/d", tmp_path / "d")
    assert (tmp_path / "d").read_bytes() == b"two" * 1000


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe") == "no bundle: it is not a file"
