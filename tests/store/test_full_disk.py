"""A full disk stops the run with its rounds readable and a status that says so."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedmpi.errors import RunFailed
from fedmpi.store import checkpoint
from fedmpi.store.checkpoint import Meta
from fedmpi.store.reader import load_run
from fedmpi.store.record import RunRecord
from tests.saved import save
from tests.store.conftest import WRITER


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", mount], capture_output=True)
    if made.returncode:
        pytest.skip(f"cannot mount a small disk: {made.stderr.decode().strip()}")
    yield mount
    subprocess.run(["umount", mount], check=True)


def test_rounds_before_the_disk_was_full_stay_readable(small_disk, begun_run, make_rows):
    folder = small_disk / "case"
    with begun_run(folder, 5, rounds=20) as record:
        _fill(small_disk)
        with pytest.raises(RunFailed, match=r"no space left on device .* --resume"):
            for index in range(5, 20):
                record.write_round(index, *make_rows(index))
        record.finish("failed", "the engine says so too")
    run = load_run(folder)
    assert run.status == "failed" and "no space left on device" in run.reason
    assert 5 <= run.rounds_completed < 20
    assert run.results["test_accuracy"][4].tolist() == [0.4, 1 / 3]
    (small_disk / "ballast").unlink()
    with RunRecord.reopen(folder) as record:
        assert record.notice is None and record.rounds_completed == run.rounds_completed


def _fill(folder):
    with (folder / "ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 512)
        except OSError:
            pass


def test_a_record_that_does_not_fit_leaves_nothing(small_disk, new_record):
    with pytest.raises(RunFailed, match="no space left on device"):
        new_record(small_disk / "case", rounds=5000)
    assert list((small_disk / "case").iterdir()) == []


def test_an_attempt_that_does_not_fit_is_refused_and_can_be_tried_again(small_disk, new_record):
    folder = small_disk / "case"
    with new_record(folder, rounds=20) as record, pytest.raises(RunFailed, match="no space left"):
        record.begin_attempt(0, 2000, ("Bcast",), {})
    run = load_run(folder)
    assert (run.status, run.rounds_completed, run.attempts) == ("failed", 0, ())
    with RunRecord.reopen(folder) as record:
        record.begin_attempt(0, 2, ("Bcast",), {})
    assert [attempt.ranks for attempt in load_run(folder).attempts] == [2]


def test_a_checkpoint_that_does_not_fit_leaves_the_former_ones(small_disk):
    for rounds in (1, 2):
        meta = Meta(rounds=rounds, config_digest="a" * 64, numerics_version=2, begun="")
        save(small_disk, meta, {}, {0: np.zeros(3, np.float32)})
    before = sorted(small_disk.iterdir())
    with pytest.raises(RunFailed, match=r"no space left on device for .*rank-0"):
        save(small_disk, meta.model_copy(update={"rounds": 3}), {}, {0: np.zeros(100_000, np.float32)})
    assert checkpoint.read_manifest(small_disk, "manifest", 1).meta.rounds == 2
    assert sorted(small_disk.iterdir()) == before


def test_a_file_size_limit_is_told_like_a_full_disk(tmp_path):
    """The same path without root: the log hits a limit that the laid-out file is below."""
    limit = 1_180_000
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(tmp_path / "case"), "2000"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        check=True,
    )
    *written, message = done.stdout.splitlines()
    assert "no space left on device" in message
    run = load_run(tmp_path / "case")
    assert (run.status, run.rounds_completed) == ("failed", len(written))
    assert run.rounds_completed > 100
