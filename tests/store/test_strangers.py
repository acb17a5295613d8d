"""A record of somebody else is read, and nothing outside it: no link, no storage elsewhere."""

import os
from dataclasses import replace

import h5py
import numpy as np
import pytest

from fedmpi.errors import BadInput
from fedmpi.store import lines
from fedmpi.store.identical import compare
from fedmpi.store.reader import load_run
from fedmpi.store.record import RunRecord
from fedmpi.tasks.graph_classification import FIELDS
from tests.refusals import refused


@pytest.fixture
def case(tmp_path, case):
    """A whole run, and beside it a file of the reader's own."""
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["accuracy"] = np.full((6, 2), 0.5)
    (tmp_path / "mine.raw").write_bytes(np.full((6, 2), 0.5).tobytes())
    return case


NAME = "test_accuracy"
ELSEWHERE = [("../mine.raw", 0, h5py.h5f.UNLIMITED)]


def put(value):
    """Return what puts something in the place of a dataset."""
    return lambda group: group.__setitem__(NAME, value)


def made(**how):
    """Return what makes a dataset in its place."""
    return lambda group: group.create_dataset(NAME, **({"shape": (6, 2), "dtype": "f8"} | how))


def virtual(group):
    layout = h5py.VirtualLayout((6, 2), "f8")
    layout[:] = h5py.VirtualSource("../mine.h5", "accuracy", (6, 2))
    group.create_virtual_dataset(NAME, layout)


def committed(group):
    group.file["kind"] = np.dtype("f8")
    group.create_dataset(NAME, (6, 2), group.file["kind"])


PLACE = "/rounds/test_accuracy"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put(h5py.ExternalLink("../mine.h5", "accuracy")), " is a link to another file, and no link"),
        (put(h5py.SoftLink("/rounds/val_accuracy")), " is a soft link, and no link is followed"),
        (put(np.zeros((6, 3))), r" is of type float64 and shape \[6, 3\], expected float64 and"),
        (put(np.zeros((6, 2), "f4")), " is of type float32"),
        (made(external=ELSEWHERE), " has its numbers in another file, which is never read"),
        (made(compression="gzip"), " is stored in chunks or through a filter"),
        (made(dtype=h5py.ref_dtype), " is of a type that no record has"),
        (made(shape=(6, 2**40)), " has a size that does not fit into the file"),
        (virtual, " is a virtual dataset"),
        (lambda group: None, ": missing"),
        (lambda group: group.__setitem__(NAME, group["val_accuracy"]), "|is in the file twice"),
        (lambda group: group.__setitem__(NAME, group.file["/"]), "|is in the file twice"),
        (committed, "|neither a group nor a dataset|of a type that no record has"),
    ],
)
def test_what_leads_out_of_the_file_is_refused_by_every_reader(tmp_path, case, finished_run, change, words):
    with h5py.File(case / "run.h5", "r+") as file:
        del file["rounds"][NAME]
        change(file["rounds"])
    words = words[1:] if words.startswith("|") else PLACE + words
    with refused(match=words):
        load_run(case)
    with pytest.raises(BadInput, match=words):
        compare(case, finished_run(tmp_path / "other"))
    with RunRecord.reopen(case) as record:  # made again from the log, never written into
        assert record.notice is not None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda file: file.create_dataset("rounds/mine", data=1), "/rounds/mine: unknown"),
        (lambda file: file.create_dataset("lives/0/mine", data=1), "/lives/0/mine: unknown"),
        (lambda file: file.attrs.update(rounds=np.int64(2**40)), "rounds: Input should be less than"),
        (lambda file: file.attrs.update(rounds="six"), "rounds: Input should be a valid integer"),
        (lambda file: file.attrs.update(extra_fields="[5]"), "0: Input should be a valid dictionary"),
        (lambda file: file.attrs.update(extra_fields="[" * 100_000), "damaged or no HDF5 file"),
        (lambda file: file.attrs.update(mine=1), "mine: Extra inputs are not permitted"),
        (lambda file: file["lives/0"].attrs.update(ranks=-1), "ranks: Input should be greater than"),
        (lambda file: file.pop("lives/0"), "/lives: none computed round 1"),
        (lambda file: file["lives/0"].attrs.update(started="yesterday"), "started: .*does not match"),
        (lambda file: file.move("lives/0", "lives/1"), "/lives: not numbered from 0"),
    ],
)
def test_attributes_and_names_are_those_of_a_record(case, change, words):
    with h5py.File(case / "run.h5", "r+") as file:
        change(file)
    with refused(match=words):
        load_run(case)


def test_a_link_in_the_place_of_the_record_is_not_followed(tmp_path, case):
    other = tmp_path / "theirs"
    other.mkdir()
    (other / "run.h5").symlink_to(case / "run.h5")
    with pytest.raises(BadInput, match=r"run\.h5: it is a link, and links are not followed"):
        load_run(other)
    (tmp_path / "link").symlink_to(case)
    assert load_run(tmp_path / "link").status == "complete"  # the folder may be one


@pytest.mark.parametrize(
    ("put_there", "what"), [(lambda log: log.symlink_to("../mine.jsonl"), "a link"), (os.mkfifo, "no plain")]
)
def test_a_log_that_is_no_plain_file_is_not_opened(tmp_path, case, put_there, what):
    os.replace(case / "events.jsonl", tmp_path / "mine.jsonl")
    put_there(case / "events.jsonl")
    with pytest.raises(BadInput, match=rf"cannot read it \(it is {what}"):
        RunRecord.reopen(case)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ((), "metric accuracy: no field val_accuracy"),
        (tuple(replace(field, axes=("round",)) for field in FIELDS), "val_accuracy .* by round and client"),
        (tuple(replace(field, dtype="i4") for field in FIELDS), r"no field val_accuracy \(f8\)"),
    ],
)
def test_a_metric_without_its_fields_is_damage(tmp_path, extra, words):
    about = {"config": {}, "clients": ["a", "b"], "rounds": 2, "partition": {}}
    RunRecord.create(tmp_path / "a", **about, extra=extra).close()
    with pytest.raises(BadInput, match=words):
        load_run(tmp_path / "a")
    with pytest.raises(BadInput, match=words):
        lines.read(tmp_path / "a" / "events.jsonl")
