import logging
import os
import random

import numpy as np
import pytest
from pydantic import ValidationError

from fedmpi.store import checkpoint
from fedmpi.store.checkpoint import Checkpoint, Meta, Unfit

ABOUT = {"config_digest": "a" * 64, "numerics_version": 2, "begun": "2026-01-01T00:00:00Z"}


def made(rounds, **arrays):
    return Checkpoint(Meta(rounds=rounds, **ABOUT), arrays)


def any_will_do(_found):
    return None


def saved_twice(folder):
    """Save checkpoints of two rounds; return the content of the newest file."""
    for rounds in (1, 2):
        checkpoint.save(folder, made(rounds, states=np.full(100, rounds, np.float32), group=np.arange(3)))
    return (folder / "checkpoint").read_bytes()


def test_round_trip(tmp_path):
    arrays = {"0/moments": np.array([[1.5, np.nan]], np.float32), "file": np.array([2**63], np.uint64)}
    checkpoint.save(tmp_path, made(12, **arrays))
    found = checkpoint.load(tmp_path, any_will_do)
    assert found.meta == Meta(rounds=12, **ABOUT)
    assert found.arrays.keys() == {"0/moments", "file"}
    assert found.arrays["0/moments"].dtype == np.float32 and found.arrays["0/moments"].shape == (1, 2)
    assert found.arrays["file"].tolist() == [2**63]
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_numpy_reads_it(tmp_path):
    checkpoint.save(tmp_path, made(1, states=np.arange(3.0)))
    with np.load(tmp_path / "checkpoint") as arrays:
        assert sorted(arrays) == ["meta", "states"]
        assert arrays["states"].tolist() == [0.0, 1.0, 2.0]


def test_none_where_there_is_none(tmp_path):
    assert checkpoint.load(tmp_path, any_will_do) is None


def test_whatever_byte_is_flipped_the_previous_one_is_used(tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)
    content, draw = saved_twice(tmp_path), random.Random(14)
    places = draw.sample(range(len(content)), 800) + list(range(len(content) - 150, len(content)))
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << draw.randrange(8)
        (tmp_path / "checkpoint").write_bytes(flipped)
        found = checkpoint.load(tmp_path, any_will_do)
        assert (found.meta.rounds, found.arrays["states"].tolist()) == (1, [1.0] * 100), place


def test_at_whatever_length_it_is_cut_the_previous_one_is_used(tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)
    content = saved_twice(tmp_path)
    for length in [*range(0, len(content), 7), *range(len(content) - 150, len(content))]:
        (tmp_path / "checkpoint").write_bytes(content[:length])
        assert checkpoint.load(tmp_path, any_will_do).meta.rounds == 1, length


@pytest.mark.parametrize("other", ["gone", "folder", "fifo", "longer", "old"])
def test_what_is_no_checkpoint_is_passed_over(tmp_path, other):
    content = saved_twice(tmp_path)
    path = tmp_path / "checkpoint"
    path.unlink()
    if other == "folder":
        path.mkdir()
    elif other == "fifo":
        os.mkfifo(path)
    elif other == "longer":
        path.write_bytes(content + b"x")
    elif other == "old":
        np.savez(path.open("wb"), meta=np.zeros(3, np.uint8), states=np.zeros(100, np.float32))
    assert checkpoint.load(tmp_path, any_will_do).meta.rounds == 1


def test_one_that_does_not_fit_is_passed_over_with_one_line(tmp_path, caplog):
    saved_twice(tmp_path)

    def check(found):
        if found.meta.rounds == 2:
            raise Unfit("it is\nahead of the record")

    assert checkpoint.load(tmp_path, check).meta.rounds == 1
    assert caplog.messages == [f"{tmp_path}/checkpoint is passed over: it is ahead of the record"]


@pytest.mark.parametrize(
    "change", [{"rounds": 0}, {"rounds": "2"}, {"rounds": 10**7}, {"config_digest": "a"}, {"more": 1}]
)
def test_what_it_says_of_its_run_is_within_bounds(change):
    with pytest.raises(ValidationError):
        Meta.model_validate({"rounds": 1, **ABOUT, **change})


def test_names_stay_when_the_folder_is_lost_before_they_change(tmp_path):
    content = saved_twice(tmp_path)

    def lost():
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        checkpoint.save(tmp_path, made(3, states=np.zeros(2)), lost)
    assert (tmp_path / "checkpoint").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "checkpoint.previous"]


def test_what_a_killed_writer_left_is_removed(tmp_path):
    (tmp_path / "checkpoint.0badcafe.tmp").write_bytes(b"half")
    saved_twice(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "checkpoint.previous"]


def test_no_pickle_is_ever_written_or_read(tmp_path):
    with pytest.raises(ValueError, match=r"[Oo]bject arrays"):
        checkpoint.save(tmp_path, made(1, model=np.array([{}], dtype=object)))
