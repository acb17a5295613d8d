import pytest

from fedmpi.comm import launch


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "PMIX_RANK",
        "PMI_RANK",
        "PMI_SIZE",
        "SLURM_STEP_ID",
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",
    ):
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
    import os

    assert (os.environ["OMP_NUM_THREADS"], os.environ["OMP_WAIT_POLICY"]) == ("1", "PASSIVE")
