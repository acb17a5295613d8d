"""A damaged record is refused, or what is read from it is exactly what was written."""

import random

import h5py
import numpy as np
import pytest

from fedmpi.errors import BadInput
from fedmpi.store.reader import load_run
from fedmpi.store.record import RunRecord

FLIPS = 120


def content(run):
    """Return everything that was read, so that two can be compared; every NaN counts as the same."""

    def plain(array):
        array = np.asarray(array)
        array = np.where(np.isnan(array), np.nan, array) if array.dtype.kind == "f" else array
        return array.dtype.str, array.shape, array.tolist() if array.dtype.kind == "U" else array.tobytes()

    attempts = [
        {**vars(attempt), "measurements": {name: plain(data) for name, data in attempt.measurements.items()}}
        for attempt in run.attempts
    ]
    parts = {part: {n: plain(a) for n, a in vars(run)[part].items()} for part in ("results", "partition")}
    return repr({**vars(run), **parts, "attempts": attempts})


def test_a_flipped_bit_is_refused_or_changes_nothing(case):
    whole, bytes_ = content(load_run(case)), (case / "run.h5").read_bytes()
    draw, refused = random.Random(11), 0
    for _ in range(FLIPS):
        changed = bytearray(bytes_)
        changed[draw.randrange(len(bytes_))] ^= 1 << draw.randrange(8)
        (case / "run.h5").write_bytes(changed)
        try:
            assert content(load_run(case)) == whole
        except BadInput as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > FLIPS / 2  # the others hit bytes that carry nothing


def _change(path, dataset, index, value):
    with h5py.File(path, "r+") as file:
        file[dataset][index] = value


@pytest.mark.parametrize(
    ("dataset", "index", "value", "words"),
    [
        ("rounds/test_accuracy", (3, 1), 0.99, "/rounds: round 4 is not what was written"),
        ("rounds/test_accuracy", 2, 0.0, "/rounds: round 3 is not what was written"),
        ("lives/0/round_seconds", 1, 9.0, "/lives/0: round 2 is not what was written"),
        ("partition/alpha/train", 0, 4, "clients or partition are not what was written"),
        ("config", (), b'{"algorithm":"fedavg","seed":8}', "configuration, clients or partition"),
        ("clients", 0, b"other", "clients or partition are not what was written"),
        ("status", (), b"failed", "/status is not what was written"),
        ("status", (), b"perfect", "/status is not what was written"),
        ("reason", (), b"all well", "/reason is not what was written"),
        ("lives/0/ended", (), b"2020-01-01T00:00:00Z", "/lives/0/ended is not what was written"),
        (
            "lives/0/provenance",
            (),
            b'{"host":"elsewhe"}',
            "attributes or provenance are not what was written",
        ),
        ("rounds_completed", (), 7, "it counts 7 rounds, but 6 have digests"),
        ("digests/results", 5, 0, "it counts 6 rounds, but 5 have digests"),
        ("digests/results", 5, 1, "/rounds: round 6 is not what was written"),
    ],
)
def test_it_says_where_and_points_to_the_repair(case, dataset, index, value, words):
    _change(case / "run.h5", dataset, index, value)
    repair = r"; its rounds are in events\.jsonl: fedmpi records repair .*case$"
    with pytest.raises(BadInput, match=f"{words}.*{repair}"):
        load_run(case)


def test_rows_that_changed_places_are_found(case):
    with h5py.File(case / "run.h5", "r+") as file:
        for name in [*(f"rounds/{name}" for name in file["rounds"]), "digests/results"]:
            file[name][1:3] = file[name][1:3][::-1].copy()
    with pytest.raises(BadInput, match="/rounds: round 2 is not what was written"):
        load_run(case)


def test_a_round_without_its_digest_is_not_whole_yet(tmp_path, begun_run):
    """A writer killed between rows and digest."""
    folder = tmp_path / "case"
    begun_run(folder, 3).close()
    for name in ("digests/results", "lives/0/digests/measurements"):
        _change(folder / "run.h5", name, 2, 0)
    _change(folder / "run.h5", "rounds_completed", (), 2)
    _change(folder / "run.h5", "lives/0/rounds_written", (), 2)
    assert load_run(folder).rounds_completed == 2
    with RunRecord.reopen(folder) as record:
        assert record.notice is None and record.rounds_completed == 3


@pytest.mark.parametrize("step", [0, 1], ids=["before the text", "after the text"])
def test_a_status_half_changed_is_readable(case, step):
    _change(case / "run.h5", "digests/reason_now_and_before", step, 5)
    assert load_run(case).reason == ""


def test_headers_carry_checksums(case):
    """All of HDF5's own structures do in the format of 1.8, and no text lies in a heap, which has none."""
    bytes_ = (case / "run.h5").read_bytes()
    assert bytes_[8] == 2  # version of the superblock
    assert b"GCOL" not in bytes_ and b"OHDR" in bytes_
