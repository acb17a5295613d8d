"""Files that somebody removes or replaces while a run writes them: the run ends and says so."""

import os
import shutil

import pytest

from fedmpi.errors import BadInput, RunFailed
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from fedmpi.store.rebuild import repair
from fedmpi.store.record import RunRecord
from tests.refusals import refused

COLLECTIVES = ("Bcast", "Gatherv", "Reduce")


@pytest.fixture
def running(tmp_path, begun_run):
    """A record with two rounds, and its folder."""
    with begun_run(tmp_path / "case", 2) as record:
        yield record, tmp_path / "case"


def test_a_log_removed_during_a_run_ends_it_and_is_made_again(running, make_rows):
    record, folder = running
    (folder / "events.jsonl").unlink()
    with pytest.raises(RunFailed, match=r"events\.jsonl was removed or replaced by somebody .* --resume"):
        record.write_round(2, *make_rows(2))
    record.close()
    assert (load_run(folder).status, load_run(folder).rounds_completed) == ("failed", 2)
    with pytest.raises(BadInput, match=r"events\.jsonl: cannot read it .* fedmpi records repair .*case$"):
        RunRecord.reopen(folder)
    assert repair(folder) == "events.jsonl was rebuilt from run.h5, 2 rounds"
    with RunRecord.reopen(folder) as again:
        assert again.notice is None
        again.begin_attempt(2, 3, COLLECTIVES, {})
        again.write_round(2, *make_rows(2))
    assert load_run(folder).rounds_completed == 3


def test_a_log_replaced_during_a_run_is_not_written_to(running, make_rows):
    record, folder = running
    copy = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").unlink()
    (folder / "events.jsonl").write_bytes(copy)
    with pytest.raises(RunFailed, match="removed or replaced"):
        record.sync()
    record.close()
    assert (folder / "events.jsonl").read_bytes() == copy


def test_a_record_removed_during_a_run_ends_it_and_is_made_again(running, make_rows):
    record, folder = running
    (folder / "run.h5").unlink()
    with pytest.raises(RunFailed, match=r"run\.h5 was removed or replaced"):
        record.sync()
    record.close()
    with RunRecord.reopen(folder) as again:
        assert again.rounds_completed == 2


def test_a_whole_folder_removed(running, make_rows):
    record, folder = running
    shutil.rmtree(folder)
    with pytest.raises(RunFailed, match="removed or replaced"):
        record.write_round(2, *make_rows(2))


def test_a_damaged_log_is_made_again_from_the_record(whole, case):
    lines = (case / "events.jsonl").read_bytes().splitlines(keepends=True)
    (case / "events.jsonl").write_bytes(b"".join(lines[:3] + lines[4:]))
    assert repair(case) == "events.jsonl was rebuilt from run.h5, 6 rounds"
    assert len((case / "events.jsonl.damaged").read_bytes().splitlines()) == 8
    assert repair(case) == "run.h5 was rebuilt from the event log, 6 rounds"
    assert differences(whole, case) == []
    assert load_run(case).attempts[0].provenance == {"host": "nowhere"}


def test_where_both_are_damaged_the_run_goes_back_to_what_is_whole(whole, case):
    lines = (case / "events.jsonl").read_bytes().splitlines(keepends=True)
    (case / "events.jsonl").write_bytes(b"".join(lines[:5] + lines[6:]))
    (case / "run.h5").write_bytes((case / "run.h5").read_bytes()[:-5000])
    assert repair(case) == (
        "both files were damaged and went back to 3 of 6 rounds; --resume computes the others again"
    )
    run = load_run(case)
    assert (run.status, run.rounds_completed) == ("stale", 3)
    assert (run.results["parameter_digest"] == load_run(whole).results["parameter_digest"][:3]).all()


def test_nothing_can_be_recovered_from_nothing(case):
    for name in ("events.jsonl", "run.h5"):
        (case / name).write_bytes(b"garbage\n")
    with refused(match="nothing can be recovered"):
        repair(case)


def test_a_record_that_may_not_be_written_is_not_continued(running, monkeypatch):
    record, folder = running
    record.close()
    allowed = os.open

    def refuse(path, flags, *rest, **named):
        if flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied", str(path))
        return allowed(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(RunFailed, match=r"cannot write .*case: .*Permission denied"):
        RunRecord.reopen(folder)
