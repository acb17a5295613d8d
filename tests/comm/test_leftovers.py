"""Shared memory that a killed life of a job left on its node."""

import os
import time

from fedmpi.comm.leftovers import remove_leftovers

SEGMENT = "mpich_shm_fc904607_0"
"""What MPICH 5.0.2 calls the segment of step 12.1 on a job's first node, as seen under Slurm 22.05."""


def made(folder, name, age_s):
    path = folder / name
    path.touch()
    os.utime(path, (time.time() - age_s,) * 2)


def test_only_what_is_older_than_the_process_and_has_the_steps_name_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("PMI_JOBID", "12.1")
    made(tmp_path, SEGMENT, 10 * 86_400)
    made(tmp_path, SEGMENT.replace("_0", "_1"), 0)
    made(tmp_path, "mpich_shm_fd90479a_0", 10 * 86_400)  # of step 12.2
    remove_leftovers(tmp_path)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [SEGMENT.replace("_0", "_1"), "mpich_shm_fd90479a_0"]


def test_outside_of_slurm_nothing_is_touched(tmp_path, monkeypatch):
    monkeypatch.delenv("PMI_JOBID", raising=False)
    made(tmp_path, SEGMENT, 10 * 86_400)
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir())
