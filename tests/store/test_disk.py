"""What the disk does for a folder that changes hands."""

import os

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
