"""A disk that fills up during a run."""

import subprocess

import pytest

from fedmpi.store.reader import load_run


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1.5 MB; making one needs root."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", folder], capture_output=True)
    if made.returncode != 0:
        pytest.skip("cannot mount a small file system here: not root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("setting", ["checkpoint_seconds=0", "rounds=100000"], ids=["checkpoint", "record"])
def test_a_full_disk_is_one_line_and_rounds_stay(fedmpi_process, tiny_suite, small_disk, setting):
    """The second checkpoint finds no room beside the first one; or a record of so many rounds finds none."""
    process = fedmpi_process("run", tiny_suite, "--case", "0", "--set", setting, "--out", small_disk)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    assert error.startswith("fedmpi: ") and error.count("\n") == 1
    assert "no space left" in error.lower()
    if setting == "checkpoint_seconds=0":
        (folder,) = small_disk.iterdir()
        run = load_run(folder)
        assert run.status == "failed" and "no space left" in run.reason.lower()
        assert run.rounds_completed >= 1
