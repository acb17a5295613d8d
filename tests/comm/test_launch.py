import os
import platform
import subprocess
import sys

import pytest

from fedmpi.comm import launch
from fedmpi.errors import BadInput


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    slurms = ("SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
    for name in (*launch._RANK, *launch._SIZE, *slurms):
        monkeypatch.delenv(name, raising=False)


def test_without_a_launcher_there_is_one_rank():
    assert (launch.rank(), launch.expected_size()) == (0, None)


@pytest.mark.parametrize(
    "variables",
    [
        {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"},
        {"PMI_RANK": "2", "PMI_SIZE": "4"},
        {"SLURM_STEP_ID": "0", "SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4"},
    ],
)
def test_each_launcher_is_understood(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (launch.rank(), launch.expected_size()) == (2, 4)


def test_a_batch_script_is_no_step_of_several_tasks(monkeypatch):
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert launch.expected_size() is None


def test_threads_are_set_and_idle_ones_sleep(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    launch.set_defaults(1)
    assert (os.environ["OMP_NUM_THREADS"], os.environ["OMP_WAIT_POLICY"]) == ("1", "PASSIVE")


ARRAYS = """
import resource, numpy as np
from fedmpi.comm import launch
from fedmpi.errors import BadInput
launch.set_defaults(1)
for turn in range(6):
    if turn == 1:
        first = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    [np.ones(375_000) for _ in range(20)]  # 3 MB each
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - first)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_kept_unless_the_user_says_otherwise(monkeypatch):
    def faults():
        done = subprocess.run([sys.executable, "-c", ARRAYS], capture_output=True, text=True, check=True)
        return int(done.stdout)

    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    assert faults() < 1_000  # an array has 732 pages
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "131072")
    assert faults() > 50_000


def test_far_more_ranks_than_cores_are_refused_outside_of_a_job(monkeypatch):
    monkeypatch.setattr(launch.os, "cpu_count", lambda: 2)
    for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"):
        monkeypatch.delenv(name, raising=False)
    assert launch.launcher(128)[1:] == ["-n", "128"]
    words = "--ranks: 99,999 ranks are too many for the 2 cores here, which take 128 at most"
    with pytest.raises(BadInput, match=f"^{words}$"):
        launch.launcher(99_999)
    monkeypatch.setenv("SLURM_JOB_ID", "7")  # whose nodes are others
    assert launch.launcher(99_999)[1:] == ["-n", "99999"]
