"""A file is read through once for each of its states."""

import hashlib
import os
import tempfile
import time

import pytest

from fedmpi.datasets import stamps


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file that changed long ago, and a list that grows with each digest that is computed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(stamps, "_SETTLED_NS", -1)
    path, computed, original = tmp_path / "columns.npy", [], hashlib.file_digest

    def count(stream, name):
        computed.append(stream.name)
        return original(stream, name)

    monkeypatch.setattr(hashlib, "file_digest", count)
    path.write_bytes(b"content")
    return path, hashlib.sha256(b"content").hexdigest(), computed


def test_the_digest_of_a_state_is_computed_once(file):
    path, digest, computed = file
    assert [stamps.agree({path: digest}) for _ in range(3)] == [True] * 3
    assert len(computed) == 1


def test_another_state_or_another_digest_is_looked_at_anew(file):
    path, digest, computed = file
    assert stamps.agree({path: digest})
    assert not stamps.agree({path: "0" * 64})
    time.sleep(0.02)
    before = path.stat()
    path.write_bytes(b"c0ntent")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as a copy that keeps times
    assert not stamps.agree({path: digest})
    assert len(computed) == 3


def test_what_is_wrong_is_never_noted(file):
    path, _, computed = file
    assert [stamps.agree({path: "0" * 64}) for _ in range(2)] == [False] * 2
    assert len(computed) == 2


def test_a_state_that_may_change_within_its_time_stamp_is_not_noted(file, monkeypatch):
    path, digest, computed = file
    monkeypatch.setattr(stamps, "_SETTLED_NS", 10**12)
    assert [stamps.agree({path: digest}) for _ in range(2)] == [True] * 2
    assert len(computed) == 2


@pytest.mark.parametrize("kind", ["file", "link", "open to others"])
def test_notes_are_kept_in_a_folder_of_the_users_own_alone(file, tmp_path, kind):
    path, digest, computed = file
    place = tmp_path / f"fedmpi-checked-{os.getuid()}"
    if kind == "file":
        place.touch()
    elif kind == "link":
        (tmp_path / "others").mkdir()
        place.symlink_to(tmp_path / "others")
    else:
        place.mkdir()
        place.chmod(0o777)
    assert [stamps.agree({path: digest}) for _ in range(2)] == [True] * 2
    assert len(computed) == 2
