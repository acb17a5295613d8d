"""What the disk does for a folder that changes hands."""

import os
import resource

import pytest

from fedmpi.store import disk


def test_a_detached_file_is_out_of_reach_for_who_has_it_open(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text("one\n")
    with path.open("a") as former:
        disk.detach(path)
        former.write("two\n")
    assert path.read_text() == "one\n"
    disk.detach(tmp_path / "absent")
    assert [each.name for each in tmp_path.iterdir()] == ["events.jsonl"]


def test_nothing_written_through_a_silenced_descriptor_arrives(tmp_path):
    path = tmp_path / "events.jsonl"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(descriptor, b"one\n")
    disk.silence(descriptor)
    os.write(descriptor, b"two\n")
    os.close(descriptor)
    assert path.read_text() == "one\n"


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "rows.csv"
    disk.write_whole(path, "one\n")
    path.chmod(0o640)
    disk.write_whole(path, b"two\n")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("two\n", 0o640)
    room = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, room[1]))
    try:
        with pytest.raises(OSError, match="too large") as refused:
            disk.write_whole(path, "three\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, room)
    assert refused.value.filename == str(path)
    assert path.read_text() == "two\n"
    assert [each.name for each in path.parent.iterdir()] == ["rows.csv"]


def test_a_pipe_is_written_to_as_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    disk.write_whole(pipe, "one\n")
    assert os.read(reader, 10) == b"one\n"
    os.close(reader)
