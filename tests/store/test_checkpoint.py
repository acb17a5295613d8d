import numpy as np
import pytest

from fedmpi.store import checkpoint


def test_round_trip(tmp_path):
    arrays = {"0/moments": np.array([[1.5, np.nan]], np.float32), "file": np.array([2**63], np.uint64)}
    checkpoint.save(tmp_path, {"round": 12, "ranks": [1, 2]}, arrays)
    meta, loaded = checkpoint.load(tmp_path)
    assert meta == {"round": 12, "ranks": [1, 2]}
    assert loaded.keys() == {"0/moments", "file"}
    assert loaded["0/moments"].dtype == np.float32 and loaded["0/moments"].shape == (1, 2)
    assert loaded["file"].tolist() == [2**63]
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_none_where_there_is_none(tmp_path):
    assert checkpoint.load(tmp_path) is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "gone"])
def test_the_previous_one_is_used_when_the_newest_is_damaged(tmp_path, damage):
    for index in (1, 2, 3):
        checkpoint.save(tmp_path, {"round": index}, {"model": np.full(100, index, np.float32)})
    path = tmp_path / "checkpoint"
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[content.index(np.full(3, 3, np.float32).tobytes()) + 40] ^= 1
    path.write_bytes({"cut": content[:300], "flipped": content, "empty": b"", "gone": b""}[damage])
    if damage == "gone":
        path.unlink()
    meta, arrays = checkpoint.load(tmp_path)
    assert meta == {"round": 2}
    assert arrays["model"].tolist() == [2.0] * 100


def test_no_pickle_is_ever_written_or_read(tmp_path):
    with pytest.raises(ValueError, match=r"[Oo]bject arrays"):
        checkpoint.save(tmp_path, {}, {"model": np.array([{}], dtype=object)})
