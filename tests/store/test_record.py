import json
import logging

import h5py
import numpy as np
import pytest

from fedmpi.errors import BadInput, RunFailed
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from fedmpi.store.record import RunRecord
from fedmpi.store.schema import Field, config_digest

COLLECTIVES = ("Bcast", "Gatherv", "Reduce")


def test_every_bit_comes_back(case):
    run = load_run(case)
    assert (run.status, run.reason, run.rounds, run.rounds_completed) == ("complete", "", 6, 6)
    assert run.clients == ("alpha", "beta")
    assert run.config == {"algorithm": "fedavg", "seed": 7}
    assert run.config_digest == config_digest({"seed": 7, "algorithm": "fedavg"})
    assert run.results["test_accuracy"][3].tolist() == [0.1 * 3, 1 / 3]
    assert np.isnan(run.results["val_loss"][0, 0]) and run.results["val_loss"][0, 1] == np.inf
    assert run.results["train_loss"][0, 0] == -np.inf
    assert np.signbit(run.results["train_loss"][0, 1])
    assert run.results["parameter_digest"].dtype == np.uint64
    assert run.results["parameter_digest"][5].tolist() == [2**64 - 6, 2**63]
    assert run.partition["alpha/train"].tolist() == [3, 1, 2]


def test_an_attempt_keeps_its_measurements_and_names(case):
    (attempt,) = load_run(case).attempts
    assert (attempt.first_round, attempt.rounds_written, attempt.ranks) == (0, 6, 3)
    assert attempt.phases == ("train", "evaluate", "wait", "communicate", "server", "record")
    assert attempt.collectives == COLLECTIVES
    assert attempt.provenance == {"host": "nowhere"}
    assert attempt.measurements["phase_seconds"].shape == (6, 3, 6)
    assert attempt.measurements["collective_bytes"].shape == (6, 3, 3)
    assert attempt.measurements["round_seconds"].tolist() == [0.25, 1.25, 2.25, 3.25, 4.25, 5.25]
    assert attempt.started and attempt.ended


def test_events_hold_every_number_as_strict_json(case):
    lines = (case / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["event"] for event in events] == ["start", "life", *["round"] * 6, "status"]
    assert events[2]["results"]["val_loss"] == [None, "inf"]
    assert events[2]["results"]["train_loss"] == ["-inf", -0.0]
    assert events[2]["results"]["parameter_digest"] == [18446744073709551615, 9223372036854775808]


def test_a_record_is_never_overwritten(case, new_record):
    with pytest.raises(BadInput, match="holds a run already; use --resume"):
        new_record(case)


def test_a_second_attempt_may_repeat_rounds_that_come_out_the_same(tmp_path, begun_run, make_rows):
    folder = tmp_path / "case"
    begun_run(folder, 4).close()
    with RunRecord.reopen(folder) as record:
        assert record.notice is None and record.rounds_completed == 4
        record.begin_attempt(2, 2, (), {})
        results, _ = make_rows(2)
        record.write_round(2, results, {"round_seconds": 9.0})
    run = load_run(folder)
    assert [attempt.rounds_written for attempt in run.attempts] == [4, 1]
    assert run.measured("round_seconds").tolist() == [0.25, 1.25, 9.0, 3.25]
    assert run.rounds_completed == 4


def test_a_repeated_round_that_differs_in_one_bit_is_refused(case, make_rows):
    with RunRecord.reopen(case) as record:
        record.begin_attempt(2, 3, COLLECTIVES, {})
        results, measurements = make_rows(2)
        results["test_accuracy"][1] = np.nextafter(1 / 3, 1)
        with pytest.raises(RunFailed, match=r"round 3, client 1 \(beta\): test_accuracy .* other processor"):
            record.write_round(2, results, measurements)
    assert load_run(case).results["test_accuracy"][2, 1] == 1 / 3


def test_a_gap_is_refused(tmp_path, new_record):
    with new_record(tmp_path / "case") as record, pytest.raises(RunFailed, match="ends after 0 rounds"):
        record.begin_attempt(3, 1, (), {})


def test_extra_fields_are_recorded_and_survive_a_rebuild(tmp_path, new_record, make_rows):
    extra = (
        Field("signature", ("round", "client"), "u8", "1", "the client's signature", "result"),
        Field("queue_seconds", ("round", "rank"), "f8", "s", "waiting", "measurement", "lower"),
    )
    folder = tmp_path / "case"
    with new_record(folder, extra=extra) as record:
        record.begin_attempt(0, 3, COLLECTIVES, {})
        results, measurements = make_rows(0, extra=extra)
        results["signature"][:] = [5, 2**64 - 1]
        record.write_round(0, results, measurements)
    (folder / "run.h5").unlink()
    RunRecord.reopen(folder).close()
    assert load_run(folder).results["signature"].tolist() == [[5, 2**64 - 1]]
    assert np.isnan(load_run(folder).attempts[0].measurements["queue_seconds"]).tolist() == [[True] * 3]


@pytest.mark.parametrize("damage", ["missing", "truncated", "a number", "behind the log"])
def test_reopening_heals_the_file_from_the_log(whole, case, damage, caplog):
    if damage == "missing":
        (case / "run.h5").unlink()
    elif damage == "truncated":
        content = (case / "run.h5").read_bytes()
        (case / "run.h5").write_bytes(content[: len(content) // 2])
    elif damage == "a number":
        with h5py.File(case / "run.h5", "r+") as file:
            file["rounds/test_accuracy"][3, 1] = 0.99
    else:
        lines = (case / "events.jsonl").read_bytes().splitlines(keepends=True)
        (case / "run.h5").unlink()
        (case / "events.jsonl").write_bytes(b"".join(lines[:5]))
        RunRecord.reopen(case).close()
        (case / "events.jsonl").write_bytes(b"".join(lines))
        assert load_run(case).rounds_completed == 3
        caplog.clear()
    with caplog.at_level(logging.WARNING), RunRecord.reopen(case) as record:
        assert record.rounds_completed == 6
        rebuilt = f"{case}/run.h5 was rebuilt from events.jsonl: 6 rounds"
        assert record.notice == (None if damage == "behind the log" else rebuilt)
    assert differences(whole, case) == []
    before, after = (load_run(folder).attempts[0].measurements for folder in (whole, case))
    assert {name: rows.tobytes() for name, rows in after.items()} == {
        name: rows.tobytes() for name, rows in before.items()
    }
    assert (case / "run.h5.damaged").exists() == (damage in ("truncated", "a number"))


def test_a_status_and_its_reason(tmp_path, new_record):
    with new_record(tmp_path / "case") as record:
        record.begin_attempt(0, 1, (), {})
        record.finish("diverged", "round 3, client beta: loss is NaN (für immer)" + "x" * 2000)
    run = load_run(tmp_path / "case")
    assert run.status == "diverged"
    assert run.reason.startswith("round 3, client beta: loss is NaN (für immer)x")
    assert len(run.reason.encode()) == 1024
