"""Only a log that a run can have written is read; anything else is one line that names the place."""

import json
import random

import pytest

from fedmpi.errors import BadInput
from fedmpi.store import lines
from fedmpi.store.chain import Chain
from fedmpi.store.events import EventLog
from fedmpi.store.lines import read
from fedmpi.store.rebuild import rebuild
from fedmpi.store.tail import Tail
from tests.refusals import refused

FLIPS = 400


@pytest.fixture
def log(case):
    """The log of a whole run: start, attempt, six rounds, status."""
    return case / "events.jsonl"


def bodies(log):
    """Return the events of a log as dictionaries, without number and digest."""
    found = [json.loads(line) for line in log.read_bytes().splitlines()]
    return [{name: each[name] for name in each if name not in ("line", "digest")} for each in found]


def reseal(log, events):
    """Write a log with right numbers and digests, whatever its events say."""
    chain, content = Chain(), b""
    for event in events:
        line, chain = chain.seal(json.dumps(event).encode())
        content += line
    log.write_bytes(content)


def test_lines_carry_number_and_digest(log):
    events = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert [event["line"] for event in events] == list(range(1, 10))
    assert all(len(bytes.fromhex(event["digest"])) == 16 for event in events)
    assert len({event["digest"] for event in events}) == 9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda all: all[:4] + all[5:], "line 5 says that it is line 6: lines are missing, doubled or moved"),
        (lambda all: all[:5] + all[4:], "line 6 says that it is line 5: lines are missing, doubled or moved"),
        (lambda all: [*all[:4], all[5], all[4], *all[6:]], "line 5 says that it is line 6"),
        (lambda all: [*all[:4], all[4].replace(b"0.2", b"0.3", 1), *all[5:]], "line 5 is not the one that"),
        (lambda all: all[1:], "line 1 says that it is line 2"),
        (lambda all: [*all[:3], b'{"event": "round"}\n', *all[4:]], "line 4 is not an event of a fedmpi run"),
        (lambda all: [b'{"event": "round"\n', *all[1:]], "line 1 is not an event of a fedmpi run"),
    ],
    ids=["missing", "doubled", "moved", "changed", "without its start", "no event", "no JSON"],
)
def test_a_gap_or_change_is_named(log, change, words):
    log.write_bytes(b"".join(change(log.read_bytes().splitlines(keepends=True))))
    with pytest.raises(BadInput, match=words):
        read(log)
    with pytest.raises(BadInput, match=words):
        rebuild(log.parent)
    with pytest.raises(BadInput, match=words):
        Tail(log).poll()


def test_it_says_how_much_is_whole_and_what_to_do(log):
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:6] + lines[7:]))
    with pytest.raises(BadInput, match=r"; 4 rounds before it are whole; .*: fedmpi records repair .*case$"):
        read(log)


def _set(**values):
    return lambda event: event.update(values)


def _in_results(name, value):
    return lambda event: event["results"].update({name: value})


def _in_measurements(name, value):
    return lambda event: event["measurements"].update({name: value})


@pytest.mark.parametrize(
    ("number", "change", "words"),
    [
        (4, _set(round=3.5), "round.round: Input should be a valid integer"),
        (4, _set(round=4), "it is of round 5, expected round 3"),
        (4, _set(round=10**30), "round.round: Input should be less than or equal to"),
        (4, lambda event: event["results"].pop("val_loss"), "val_loss: not in the results"),
        (4, _in_results("loss", [1.0, 2.0]), "loss: no field of this run"),
        (4, _in_results("val_loss", [1.0]), r"val_loss: not an array of shape \[2\]"),
        (4, _in_results("val_loss", [1.0, "x"]), "val_loss: 'x' is no number"),
        (4, _in_results("val_loss", [1.0, True]), "val_loss: not all of it is of type f8"),
        (4, _in_results("steps", [1.0, 2.0]), "steps: not all of it is of type i4"),
        (4, _in_results("steps", [2**31, 1]), "steps: a number does not fit i4"),
        (4, _in_measurements("round_seconds", -1e308), "round_seconds: .* not between 0 and 1e\\+09 s"),
        (4, _in_measurements("peak_host_bytes", [2**62] * 3), "not between 0 and 1e\\+18 B"),
        (4, _set(results=[]), "round.results: Input should be a valid dictionary"),
        (4, _set(more=1), "round.more: Extra inputs are not permitted"),
        (1, _set(first_round=1), "it goes on at round 2, but there are 0 before it"),
        (1, _set(time="yesterday"), "life.time: .*'yesterday' does not match"),
        (1, _set(ranks="3"), "life.ranks: Input should be a valid integer"),
        (1, _set(provenance=[]), "life.provenance: Input should be a valid dictionary"),
        (1, _set(provenance={"a": "\0"}), "a NUL in a text"),
        (8, _set(status="perfect"), "status.status: Input should be"),
        (8, _set(event="end"), "Input tag 'end'"),
        (0, _set(rounds=0), "start.rounds: Input should be greater than or equal to 1"),
        (0, _set(rounds=7), "line 9 .*complete after 6 of 7 rounds"),
        (0, _set(clients=[]), "start.clients: List should have at least 1 item"),
        (0, _set(partition={"a": 5}), "start.partition.a: Input should be a valid dictionary"),
        (0, _set(partition={"test_ptr": {"dtype": "<i8", "shape": [1], "data": [-1]}}), "test_ptr"),
        (0, _set(schema_version=2), "written in schema 2, this fedmpi writes 4: only `report` reads it"),
    ],
)
def test_what_no_run_says_is_refused_whatever_its_digest(log, number, change, words):
    events = bodies(log)
    change(events[number])
    reseal(log, events)
    with refused(match=words):
        read(log)


def test_measurements_that_are_left_out_take_no_memory(log):
    events = bodies(log)
    events[1]["ranks"] = 10_000_000
    events[2]["measurements"] = {}
    reseal(log, events[:3])
    unwritten = read(log)[2].measurements["phase_seconds"]
    assert unwritten.shape == (10_000_000, 6)
    assert unwritten.strides == (0, 0)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ([0, 0, 1], "line 2 .*a second start"),
        ([1, 2], "line 1 .*it comes before the start"),
        ([0, 2], "line 2 .*a round before the first attempt"),
        ([0, 1, 2, 3, 4, 5, 8], "line 7 .*complete after 4 of 6 rounds"),
        ([0, 1, 2, 4], "line 4 .*it is of round 3, expected round 2"),
        ([0, 1, 2, 2], "line 4 .*it is of round 1, expected round 2"),
    ],
)
def test_events_come_in_the_order_of_a_run(log, order, words):
    events = bodies(log)
    reseal(log, [events[number] for number in order])
    with pytest.raises(BadInput, match=words):
        read(log)


@pytest.mark.parametrize(
    "text",
    [b"[" * 100_000, b'{"rounds": ' + b"9" * 5000 + b"}", b"null", b'{"event": NaN}', b"\xff\xfe", b""],
)
def test_any_bytes_are_refused_in_one_line(log, text):
    log.write_bytes(text + b"\n")
    with pytest.raises(BadInput, match="line 1 is not an event of a fedmpi run") as refused:
        read(log)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


def test_a_last_line_cut_off_is_left_out_and_then_cut_away(log):
    whole = log.read_bytes()
    log.write_bytes(whole[:-20])
    assert len(read(log)) == 8
    EventLog(log).close()
    assert log.read_bytes() == whole[: whole[:-20].rindex(b"\n") + 1]
    log.write_bytes(b"")
    with pytest.raises(BadInput, match="no event of a fedmpi run in it"):
        read(log)


def test_a_line_without_end_is_not_read_into_memory(log, monkeypatch):
    monkeypatch.setattr(lines, "MOST_BYTES", 100_000)
    with log.open("ab") as stream:
        stream.write(b"x" * 200_000 + b"\n")
    with refused(match=r"line 10 is not an event of a fedmpi run \(longer than 100000 bytes\)"):
        read(log)


def test_no_flipped_bit_passes(log):
    content, draw = log.read_bytes(), random.Random(7)
    for _ in range(FLIPS):
        changed = bytearray(content)
        changed[draw.randrange(len(content) - 1)] ^= 1 << draw.randrange(8)  # without the last line's end
        log.write_bytes(changed)
        with pytest.raises(BadInput):
            read(log)
