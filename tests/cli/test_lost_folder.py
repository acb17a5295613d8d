"""A run that stood still while another one took its folder over writes nothing more there."""

import json
import os
import signal
import time

import pytest

from fedmpi.store import lines
from fedmpi.store.lock import FolderLock
from fedmpi.store.reader import load_run
from tests.cli.test_resume import signalled
from tests.cli.waiting import wait_for


@pytest.fixture
def stopped(fedmpi_process, tiny_suite, tmp_path):
    """A run of very many rounds that was stopped with SIGSTOP; its lock is two minutes old.

    Rounds train for a few tenths of a second, so that it is not stopped between a look at its lock and a write.
    """
    folder = tmp_path / "runs" / "fedavg"
    long = "rounds = 3000\nlocal_epochs = 100\ncheckpoint_seconds = 0.2"
    tiny_suite.write_text(tiny_suite.read_text().replace("rounds = 4", long))
    process = fedmpi_process("run", tiny_suite, "--case", "0", "--out", "runs")
    try:
        wait_for((folder / "checkpoints/manifest").exists)
        process.send_signal(signal.SIGSTOP)
        lock = folder / "lock"
        lock.write_text(json.dumps({**json.loads(lock.read_text()), "place": "another host"}))
        os.utime(lock, (time.time() - 130,) * 2)
        yield process, folder
    finally:
        process.kill()
        process.communicate()


def contents(folder):
    """Return all files but those of a checkpoint that was being written and is named nowhere."""
    files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    named = b"".join(content for path, content in files.items() if path.name.startswith("manifest"))
    return {
        path: content
        for path, content in files.items()
        if path.suffix[1:5] not in ("rank", "serv") or path.name.encode() in named
    }


def goes_on(process, folder):
    """Let the stopped run go on to its end, which leaves the folder as it is; return its one line."""
    before = contents(folder)
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert contents(folder) == before
    assert (process.returncode, err.count("\n")) == (1, 1)
    return err


@pytest.mark.long
def test_the_new_owners_files_stay_as_they_are(fedmpi, stopped):
    _, folder = stopped
    with signalled(lambda client, case, round: True):
        fedmpi("run", "--resume", folder, code=75)
    with FolderLock(folder):  # as the run that took over would hold it
        assert "was taken over by another process while this one stood still" in goes_on(*stopped)
    assert load_run(folder).status == "interrupted"
    assert lines.read(folder / "events.jsonl")[-1].status == "interrupted"


@pytest.mark.long
def test_a_run_whose_lock_was_removed_writes_nothing_more(stopped):
    (stopped[1] / "lock").unlink()
    goes_on(*stopped)
