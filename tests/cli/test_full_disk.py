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


def test_rounds_so_far_stay_readable_and_the_status_says_why(fedmpi_process, tiny_suite, small_disk):
    # The second checkpoint finds no room beside the first one.
    process = fedmpi_process(
        "run", tiny_suite, "--case", "0", "--set", "checkpoint_seconds=0", "--out", small_disk
    )
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    assert error.startswith("fedmpi: ")
    assert error.count("\n") == 1
    assert "no space left" in error.lower()
    (folder,) = small_disk.iterdir()
    run = load_run(folder)
    assert run.status == "failed"
    assert "no space left" in run.reason.lower()
    assert run.rounds_completed >= 1


def test_a_disk_too_small_for_the_record_is_one_line(fedmpi_process, tiny_suite, small_disk):
    process = fedmpi_process("run", tiny_suite, "--case", "0", "--set", "rounds=100000", "--out", small_disk)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    assert error.count("\n") == 1
    assert "no space left" in error
