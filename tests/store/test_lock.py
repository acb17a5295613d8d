import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fedmpi.errors import BadInput
from fedmpi.store.disk import system_locks
from fedmpi.store.lock import FolderLock, _place, in_turn, state

_HOLDER = """
import sys, time
from pathlib import Path
from fedmpi.errors import BadInput
from fedmpi.store.lock import FolderLock
while time.time() < float(sys.argv[2]):
    pass
try:
    with FolderLock(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
except BadInput as error:
    print(error, flush=True)
"""


def holder(folder, at=0.0):
    return subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(folder), str(at)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "SLURM_JOB_ID": "4711"},
    )


def test_a_live_process_keeps_others_out_and_lets_them_in_when_it_ends(tmp_path):
    process = holder(tmp_path)
    assert process.stdout.readline() == "held\n"
    assert state(tmp_path) == "live"
    refused = rf"is in use by pid {process.pid} on host .* \(job 4711\); wait for it"
    with pytest.raises(BadInput, match=refused), FolderLock(tmp_path):
        pass
    process.communicate("")
    assert state(tmp_path) == "free"
    with FolderLock(tmp_path):
        assert state(tmp_path) == "live"
    assert list(tmp_path.iterdir()) == []


def test_of_many_takers_of_a_killed_process_s_lock_one_wins(tmp_path):
    dead = holder(tmp_path)
    assert dead.stdout.readline() == "held\n"
    dead.kill()
    dead.communicate()
    assert state(tmp_path) == "stale"
    start = time.time() + 1.0
    takers = [holder(tmp_path, start) for _ in range(6)]
    answers = [taker.stdout.readline() for taker in takers]
    for taker in takers:
        taker.communicate("")
    assert answers.count("held\n") == 1
    assert sum("is in use by pid" in answer for answer in answers) == 5


def _foreign(folder, **changes):
    owner = {"job": "", "host": "elsewhere", "pid": 1, "started": "1", "place": "elsewhere", **changes}
    (folder / "lock").write_text(json.dumps(owner))


def test_on_another_host_the_heartbeat_decides(tmp_path):
    _foreign(tmp_path)
    with pytest.raises(BadInput, match=r"by pid 1 on host elsewhere; wait"), FolderLock(tmp_path):
        pass
    old = time.time() - 130
    os.utime(tmp_path / "lock", (old, old))
    assert state(tmp_path) == "stale"
    with FolderLock(tmp_path):
        assert state(tmp_path) == "live"


def test_the_former_attempt_of_a_job_that_was_queued_again_is_stale_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    for job, restart, found in (("4711", "0", "stale"), ("4711", "1", "live"), ("4712", "0", "live")):
        _foreign(tmp_path, job=job, restart=restart)
        assert state(tmp_path) == found


def test_a_pid_that_was_given_to_another_process_is_stale(tmp_path):
    with FolderLock(tmp_path):
        mine = json.loads((tmp_path / "lock").read_text())
    (tmp_path / "lock").write_text(json.dumps({**mine, "started": "17"}))
    assert state(tmp_path) == "stale"


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot write there"), FolderLock(tmp_path / "file" / "case"):
        pass


def test_a_lock_that_is_anothers_or_gone_is_lost_for_good(tmp_path):
    with FolderLock(tmp_path) as lock:
        mine = (tmp_path / "lock").read_text()
        assert not lock.lost()
        _foreign(tmp_path)
        assert lock.lost()
        (tmp_path / "lock").write_text(mine)
        assert lock.lost()
    with FolderLock(tmp_path / "other") as lock:
        (tmp_path / "other" / "lock").unlink()
        assert lock.lost()


@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_in_the_place_of_a_lock_is_not_waited_for(tmp_path, put):
    with FolderLock(tmp_path) as lock:
        (tmp_path / "lock").unlink()
        put(tmp_path / "lock")
        assert lock.lost()


def test_only_an_owner_on_another_machine_may_still_live_after_a_takeover(tmp_path):
    for number, place in enumerate(("elsewhere", _place())):
        _foreign(tmp_path, place=place)
        old = time.time() - 130
        os.utime(tmp_path / "lock", (old, old))
        with FolderLock(tmp_path) as lock:
            assert lock.former_may_live == (number == 0)
    with FolderLock(tmp_path) as lock:
        assert not lock.former_may_live


@pytest.mark.parametrize(
    "text", ['{"pid": "text", "started": "1"}', '{"pid": 1e99, "started": 1}', "[" * 100_000, "[]", "{", ""]
)
def test_a_lock_that_names_no_process_counts_by_its_age(tmp_path, text):
    (tmp_path / "lock").write_text(text)
    assert state(tmp_path) == "live"
    os.utime(tmp_path / "lock", (1, 1))
    assert state(tmp_path) == "stale"
    with FolderLock(tmp_path):
        assert state(tmp_path) == "live"


def test_a_turn_ends_before_the_next_begins_and_touches_no_run_s_lock(tmp_path):
    order = []

    def second():
        with in_turn(tmp_path):
            order.append("second")

    with in_turn(tmp_path):
        assert state(tmp_path) == "free"
        with pytest.raises(BadInput, match="somebody is at it"), in_turn(tmp_path, "somebody is at it"):
            pass
        waiting = threading.Thread(target=second)
        waiting.start()
        time.sleep(0.3)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_where_locks_cannot_be_tried_is_not_one_without_locks(tmp_path):
    assert set(system_locks(tmp_path).values()) <= {"yes", "no: Function not implemented"}
    found = system_locks(tmp_path / "absent")
    assert set(found.values()) == {"cannot be tried: No such file or directory"}
