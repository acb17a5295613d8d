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


@pytest.fixture
def case(tmp_path, finished_run):
    """A whole run, and beside it a file of the reader's own."""
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file["accuracy"] = np.full((6, 2), 0.5)
    (tmp_path / "mine.raw").write_bytes(np.full((6, 2), 0.5).tobytes())
    return finished_run(tmp_path / "case")


def _external_link(group, name, data):
    group[name] = h5py.ExternalLink("../mine.h5", "accuracy")


def _soft_link(group, name, data):
    group[name] = h5py.SoftLink("/rounds/val_accuracy")


def _raw_storage(group, name, data):
    external = [(str(group.file.filename).replace("case/run.h5", "mine.raw"), 0, h5py.h5f.UNLIMITED)]
    group.create_dataset(name, data.shape, data.dtype, external=external)


def _virtual(group, name, data):
    layout = h5py.VirtualLayout(data.shape, data.dtype)
    layout[:] = h5py.VirtualSource("../mine.h5", "accuracy", data.shape)
    group.create_virtual_dataset(name, layout)


def _compressed(group, name, data):
    group.create_dataset(name, data=data, compression="gzip")


def _reference(group, name, data):
    group.create_dataset(name, data.shape, h5py.ref_dtype)


def _committed(group, name, data):
    group.file["kind"] = np.dtype("f8")
    group.create_dataset(name, data=data, dtype=group.file["kind"])


def _twice(group, name, data):
    group[name] = group["val_accuracy"]


def _group(group, name, data):
    group[name] = group.file["/"]


def _sparse(group, name, data):
    group.create_dataset(name, (6, 2**40), "f8")


def _other_shape(group, name, data):
    group.create_dataset(name, data=np.zeros((6, 3)))


def _other_type(group, name, data):
    group.create_dataset(name, data=np.zeros((6, 2), "f4"))


def _nothing(group, name, data):
    pass


@pytest.mark.parametrize(
    ("put", "words"),
    [
        (_external_link, "/rounds/test_accuracy is a link to another file, and no link is followed"),
        (_soft_link, "/rounds/test_accuracy is a soft link, and no link is followed"),
        (_raw_storage, "/rounds/test_accuracy has its numbers in another file, which is never read"),
        (_virtual, "/rounds/test_accuracy is a virtual dataset"),
        (_compressed, "/rounds/test_accuracy is stored in chunks or through a filter"),
        (_reference, "/rounds/test_accuracy is of a type that no record has"),
        (_committed, "neither a group nor a dataset|of a type that no record has"),
        (_twice, "is in the file twice"),
        (_group, "is in the file twice"),
        (_sparse, "/rounds/test_accuracy has a size that does not fit into the file"),
        (_other_shape, r"/rounds/test_accuracy is of type float64 and shape \[6, 3\], expected float64 and"),
        (_other_type, "/rounds/test_accuracy is of type float32"),
        (_nothing, "/rounds/test_accuracy: missing"),
    ],
)
def test_what_leads_out_of_the_file_is_refused_by_every_reader(tmp_path, case, finished_run, put, words):
    with h5py.File(case / "run.h5", "r+") as file:
        group, data = file["rounds"], file["rounds/test_accuracy"][()]
        del group["test_accuracy"]
        put(group, "test_accuracy", data)
    with pytest.raises(BadInput, match=words) as refused:
        load_run(case)
    assert "\n" not in str(refused.value)
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
    with pytest.raises(BadInput, match=words) as refused:
        load_run(case)
    assert "\n" not in str(refused.value)


def test_a_link_in_the_place_of_the_record_is_not_followed(tmp_path, case):
    other = tmp_path / "theirs"
    other.mkdir()
    (other / "run.h5").symlink_to(case / "run.h5")
    with pytest.raises(BadInput, match=r"run\.h5: it is a link, and links are not followed"):
        load_run(other)
    (tmp_path / "link").symlink_to(case)
    assert load_run(tmp_path / "link").status == "complete"  # the folder may be one


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_log_that_is_no_plain_file_is_not_opened(tmp_path, case, kind):
    os.replace(case / "events.jsonl", tmp_path / "mine.jsonl")
    if kind == "link":
        (case / "events.jsonl").symlink_to(tmp_path / "mine.jsonl")
    else:
        os.mkfifo(case / "events.jsonl")
    with pytest.raises(
        BadInput, match=f"cannot read it \\(it is {'a link' if kind == 'link' else 'no plain'}"
    ):
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
