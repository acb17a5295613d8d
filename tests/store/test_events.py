import pytest

from fedmpi.errors import BadInput
from fedmpi.store import events
from fedmpi.store.identical import differences
from fedmpi.store.lines import read
from fedmpi.store.reader import load_run
from fedmpi.store.rebuild import rebuild


def test_a_last_line_cut_off_is_left_out_and_then_cut_away(tmp_path, finished_run):
    log = finished_run(tmp_path / "case") / "events.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole[:-20])
    assert len(read(log)) == 8
    events.EventLog(log).close()
    assert log.read_bytes() == whole[: whole[:-20].rindex(b"\n") + 1]


def test_a_foreign_log_is_refused(tmp_path):
    (tmp_path / "events.jsonl").write_text("")
    with pytest.raises(BadInput, match="no event of a fedmpi run in it"):
        rebuild(tmp_path)


def test_a_rebuilt_file_equals_the_lost_one_measurements_included(tmp_path, finished_run):
    folder = finished_run(tmp_path / "case")
    before = load_run(folder)
    assert rebuild(folder) == 6
    after = load_run(folder)
    assert differences(folder, folder / "run.h5.damaged") == []
    assert after.status == before.status == "complete"
    assert after.attempts[0].started == before.attempts[0].started
    assert after.attempts[0].ended == before.attempts[0].ended
    for name, data in before.attempts[0].measurements.items():
        assert after.attempts[0].measurements[name].tobytes() == data.tobytes(), name
