"""Shared memory that killed ranks left on their node."""

import mmap
import os
import time

import pytest

from fedmpi.comm.leftovers import remove_leftovers

SEGMENT = "mpich_shm_fc904607_0"
"""What MPICH 5.0.2 calls the segment of step 12.1 on a job's first node, as seen under Slurm 22.05."""
OTHER = "mpich_shm_fd90479a_0"
"""That of step 12.2."""


def made(folder, name, age_s):
    path = folder / name
    path.write_bytes(bytes(4096))
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def left(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def mapped(tmp_path):
    """Make a segment that this process has mapped."""
    kept = []

    def make(name):
        path = made(tmp_path, name, 0)
        with path.open("r+b") as file:
            kept.append(mmap.mmap(file.fileno(), 4096))
        os.utime(path, (time.time() - 86_400,) * 2)

    yield make
    for each in kept:
        each.close()


@pytest.mark.parametrize("step", ["", "12.1"])
def test_what_is_older_than_the_process_and_mapped_by_nobody_is_removed(tmp_path, monkeypatch, step):
    monkeypatch.setenv("PMI_JOBID", step)
    for name in (SEGMENT, OTHER, "mpich_shm_2919_0"):
        made(tmp_path, name, 86_400)
    made(tmp_path, "mpich_shm_1_0", 0)  # of ranks that start now
    made(tmp_path, "psm3_shm", 86_400)
    remove_leftovers(tmp_path)
    assert left(tmp_path) == ["mpich_shm_1_0", "psm3_shm"]


def test_what_a_live_process_has_mapped_stays(tmp_path, monkeypatch, mapped):
    monkeypatch.delenv("PMI_JOBID", raising=False)
    mapped(SEGMENT)
    remove_leftovers(tmp_path)
    assert left(tmp_path) == [SEGMENT]


def test_the_steps_own_segment_of_an_earlier_attempt_goes_though_it_is_mapped(tmp_path, monkeypatch, mapped):
    monkeypatch.setenv("PMI_JOBID", "12.1")
    mapped(SEGMENT)
    mapped(OTHER)
    remove_leftovers(tmp_path)
    assert left(tmp_path) == [OTHER]


def test_what_is_no_file_of_the_users_own_stays(tmp_path, monkeypatch):
    monkeypatch.delenv("PMI_JOBID", raising=False)
    made(tmp_path, SEGMENT, 86_400)
    (tmp_path / OTHER).symlink_to(tmp_path / SEGMENT)
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    remove_leftovers(tmp_path)
    assert left(tmp_path) == [SEGMENT, OTHER]
