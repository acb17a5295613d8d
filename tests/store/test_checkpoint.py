import os
import random

import numpy as np
import pytest
from pydantic import ValidationError

from fedmpi.errors import RunFailed
from fedmpi.store import checkpoint
from fedmpi.store.checkpoint import Manifest, Meta, Part, Unfit
from tests.saved import save

ABOUT = {"config_digest": "a" * 64, "numerics_version": 2, "begun": "2026-01-01T00:00:00Z"}


def row(*values):
    return np.array(values, np.float32)


def saved(folder, rounds, **options):
    """Save the checkpoint of two ranks that host clients 0 and 2, and 1."""
    states = {0: row(rounds, 1), 2: row(rounds, 2, 3)}, {1: row(rounds)}
    server = {"group": np.array([0, 1, 0]), "sum": np.array([rounds / 2])}
    return save(folder, Meta(rounds=rounds, **ABOUT), server, *states, **options)


def load(folder):
    """Return round, group and all states of the newest checkpoint that can be used."""
    for name in checkpoint.NAMES:
        try:
            manifest = checkpoint.read_manifest(folder, name, 3)
            if manifest is not None:
                group = checkpoint.read(folder, manifest.server)["group"].tolist()
                states = checkpoint.read_states(folder, manifest, range(3))
                return manifest.meta.rounds, group, {n: state.tolist() for n, state in states.items()}
        except Unfit:
            pass
    return None


def expected(rounds):
    return rounds, [0, 1, 0], {0: [rounds, 1.0], 1: [rounds], 2: [rounds, 2.0, 3.0]}


def test_a_rank_reads_its_clients_whichever_ranks_wrote_them(tmp_path):
    manifest = saved(tmp_path, 12)
    assert manifest.meta == Meta(rounds=12, **ABOUT)
    states = checkpoint.read_states(tmp_path, manifest, [1, 2])
    assert {n: state.tolist() for n, state in states.items()} == {1: [12.0], 2: [12.0, 2.0, 3.0]}
    assert load(tmp_path) == expected(12)
    with np.load(tmp_path / manifest.parts[0].file) as arrays:  # NumPy reads a part
        assert sorted(arrays) == ["sizes", "states"] and arrays["sizes"].tolist() == [2, 3]


def test_a_file_that_holds_none_of_its_clients_is_not_read(tmp_path):
    manifest = saved(tmp_path, 1)
    (tmp_path / manifest.parts[0].file).unlink()
    assert checkpoint.read_states(tmp_path, manifest, [1])[1].tolist() == [1.0]
    with pytest.raises(Unfit, match=r"0badcafe-0000001\.rank-0 is missing"):
        checkpoint.read_states(tmp_path, manifest, [0, 1])


def test_the_last_two_stay_and_older_ones_go(tmp_path):
    assert load(tmp_path) is None and load(tmp_path / "missing") is None
    for rounds in (1, 2, 3):
        saved(tmp_path, rounds)
    assert load(tmp_path) == expected(3)
    endings = ("rank-0", "rank-1", "server")
    parts = [f"0badcafe-000000{rounds}.{end}" for rounds in (2, 3) for end in endings]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*parts, "manifest", "manifest.previous"]


def files_of(manifest):
    return ["manifest", manifest.server.file, *(part.file for part in manifest.parts)]


@pytest.mark.parametrize("place", range(4))
def test_whatever_byte_is_flipped_and_wherever_a_file_is_cut_the_previous_one_is_used(tmp_path, place):
    saved(tmp_path, 1)
    path, draw = tmp_path / files_of(saved(tmp_path, 2))[place], random.Random(14)
    content = path.read_bytes()
    end = range(len(content) - 150, len(content))
    for at in {*draw.sample(range(len(content)), 200), *end}:
        flipped = bytearray(content)
        flipped[at] ^= 1 << draw.randrange(8)
        path.write_bytes(flipped)
        assert load(tmp_path) == expected(1), at
    for length in [*range(0, len(content), 7), *end]:
        path.write_bytes(content[:length])
        assert load(tmp_path) == expected(1), length


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("other", ["gone", "folder", "fifo", "link", "longer", "another"])
def test_what_is_another_file_is_passed_over(tmp_path, place, other):
    first = files_of(saved(tmp_path, 1))[place]
    path = tmp_path / files_of(saved(tmp_path, 2))[place]
    content = path.read_bytes()
    path.unlink()
    if other in ("folder", "fifo"):
        {"folder": os.mkdir, "fifo": os.mkfifo}[other](path)
    elif other == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif other == "longer":
        path.write_bytes(content + b"x")
    elif other == "another" and place:  # whole, but of the checkpoint before
        path.write_bytes((tmp_path / first).read_bytes())
    assert load(tmp_path) == expected(1)


@pytest.mark.parametrize("clients", [[[0, 1]], [[0, 1], [2, 2]], [[0, 1], [2, 3]]])
def test_a_manifest_names_every_client_once(tmp_path, clients):
    about = Meta(rounds=1, **ABOUT)
    save(tmp_path, about, {}, *({n: row(1) for n in dict.fromkeys(mine)} for mine in clients))
    if clients[-1] == [2, 2]:
        whole = checkpoint.read_manifest(tmp_path, "manifest", 3)
        parts = [whole.parts[0], whole.parts[1].model_copy(update={"clients": [2, 2]})]
        checkpoint.save(tmp_path, whole.model_copy(update={"parts": parts}))
    with pytest.raises(Unfit, match="its files have other clients than this run"):
        checkpoint.read_manifest(tmp_path, "manifest", 3)


@pytest.mark.parametrize(
    "arrays",
    [
        {"states": row(1, 2), "sizes": np.array([2, 1])},
        {"states": row(1, 2, 3), "sizes": np.array([4, -1])},
        {"states": row(1, 2, 3), "sizes": np.array([3])},
        {"states": row(1, 2, 3), "sizes": np.array([2.0, 1.0])},
        {"states": row(1, 2, 3).reshape(3, 1), "sizes": np.array([2, 1])},
        {"states": row(1, 2, 3)},
    ],
)
def test_a_part_whose_states_are_not_those_of_its_clients_is_refused(tmp_path, arrays):
    path = tmp_path / checkpoint.file_name("0badcafe", 1, 0)
    part = Part(file=path.name, sha256=checkpoint.write(path, arrays), clients=[0, 1])
    manifest = Manifest(meta=Meta(rounds=1, **ABOUT), server=part, parts=[part])
    with pytest.raises(Unfit, match="rank-0 does not hold the states of its clients"):
        checkpoint.read_states(tmp_path, manifest, [1])


@pytest.mark.parametrize(
    "change", [{"rounds": 0}, {"rounds": "2"}, {"rounds": 10**7}, {"config_digest": "a"}, {"more": 1}]
)
def test_what_it_says_of_its_run_is_within_bounds(change):
    with pytest.raises(ValidationError):
        Meta.model_validate({"rounds": 1, **ABOUT, **change})


def test_a_manifest_names_no_file_outside_of_its_folder():
    for name in ("../run.h5", "/etc/passwd", "0badcafe-0000001.rank-1/../x", "manifest"):
        with pytest.raises(ValidationError):
            Part(file=name, sha256="a" * 64)


def test_names_stay_when_the_folder_is_lost_before_they_change(tmp_path):
    saved(tmp_path, 1)
    manifest = saved(tmp_path, 2)

    def lost():
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        checkpoint.save(tmp_path, manifest.model_copy(update={"parts": []}), lost)
    assert load(tmp_path) == expected(2)
    assert not (tmp_path / "manifest.tmp").exists()


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path):
    for name in ("12345678-0000009.rank-4", "12345678-0000009.server", "manifest.tmp", "notes.txt"):
        (tmp_path / name).write_bytes(b"half")
    manifest = saved(tmp_path, 2)
    checkpoint.clear(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*files_of(manifest), "notes.txt"}


def test_a_kill_between_the_two_renames_leaves_the_former_newest(tmp_path):
    saved(tmp_path, 1)
    saved(tmp_path, 2)
    os.replace(tmp_path / "manifest", tmp_path / "manifest.previous")
    checkpoint.clear(tmp_path)  # as the next attempt does
    assert load(tmp_path) == expected(2)


def test_a_file_that_is_there_already_is_not_overwritten(tmp_path):
    path = tmp_path / checkpoint.file_name("0badcafe", 1, 0)
    path.write_bytes(b"of another process")
    with pytest.raises(RunFailed, match="File exists"):
        checkpoint.write(path, {"states": row(1)})
    assert path.read_bytes() == b"of another process"


def test_no_pickle_is_ever_written_or_read(tmp_path):
    with pytest.raises(ValueError, match=r"[Oo]bject arrays"):
        checkpoint.write(tmp_path / "part", {"model": np.array([{}], dtype=object)})
    assert not any(tmp_path.iterdir())
