import numpy as np
import pytest

from fedmpi.metrics.metric import ACCURACY
from fedmpi.store.chain import Chain
from fedmpi.store.events import NAME, Attempt, EventLog, Start, Status, json_of
from fedmpi.store.tail import Tail
from fedmpi.tasks.graph_classification import FIELDS


def start(rounds=3):
    return Start({}, ("c",), rounds, {"test_ptr": np.array([0, 1])}, FIELDS, (ACCURACY,), "0", 1, "now")


def lines_of(*events):
    """Return the bytes of a log of these events, line by line."""
    chain, found = Chain(), []
    for event in events:
        line, chain = chain.seal(json_of(event))
        found.append(line)
    return found


def kinds(found):
    return [type(event).__name__ for event in found]


def test_only_whole_new_lines_are_returned(tmp_path):
    path, line = tmp_path / NAME, lines_of(start(), Status("interrupted", "", "now"))[1]
    tail = Tail(path)
    assert tail.poll() == []
    log = EventLog(path)
    log.append(start())
    assert kinds(tail.poll()) == ["Start"]
    with path.open("ab") as stream:
        stream.write(line[:10])
        stream.flush()
        assert tail.poll() == []
        stream.write(line[10:])
        stream.flush()
    assert kinds(tail.poll()) == ["Status"]
    assert tail.poll() == []


@pytest.mark.parametrize("how", ["shorter", "another file"])
def test_a_log_begun_anew_is_read_from_its_beginning(tmp_path, how):
    path = tmp_path / NAME
    path.write_bytes(b"".join(lines_of(start(), Attempt(0, 1, (), {}, "2026-01-01T00:00:00Z"))))
    tail = Tail(path)
    assert kinds(tail.poll()) == ["Start", "Attempt"]
    other = tmp_path / "other"
    other.write_bytes(lines_of(start(5))[0])
    if how == "shorter":
        path.write_bytes(other.read_bytes())
    else:
        other.replace(path)
    (event,) = tail.poll()
    assert event.rounds == 5
