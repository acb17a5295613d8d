import json

import h5py
import pytest

from fedmpi.errors import BadInput
from fedmpi.store.lock import FolderLock
from fedmpi.store.reader import load_run
from tests.refusals import refused


def test_a_file_or_its_folder_may_be_named(case):
    assert load_run(case / "run.h5").rounds_completed == load_run(case).rounds_completed == 6


def test_running_reads_as_stale_unless_a_live_process_holds_the_folder(tmp_path, new_record):
    folder = tmp_path / "case"
    with FolderLock(folder):
        with new_record(folder) as record:
            record.begin_attempt(0, 1, (), {})
        assert load_run(folder).status == "running"
    assert load_run(folder).status == "stale"
    dead = {"job": "", "host": "h", "pid": 1, "started": "no", "place": "elsewhere"}
    (folder / "lock").write_text(json.dumps(dead))
    assert load_run(folder).status == "running"  # another host, heartbeat still fresh


def test_a_truncated_file_names_the_repair(case):
    content = (case / "run.h5").read_bytes()
    for size in (0, 100, len(content) // 2, len(content) - 1):
        (case / "run.h5").write_bytes(content[:size])
        with refused(match=r"run\.h5: damaged or no HDF5 file; .* fedmpi records repair .*case$"):
            load_run(case)


def test_a_missing_file(tmp_path):
    with pytest.raises(BadInput, match=r"nowhere: no such record$"):
        load_run(tmp_path / "nowhere")


def test_foreign_files(tmp_path):
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(BadInput, match=r"text\.h5: damaged or no HDF5 file$"):
        load_run(tmp_path / "text.h5")
    h5py.File(tmp_path / "other.h5", "w").close()
    with pytest.raises(BadInput, match=r"other\.h5: an HDF5 file, but not the record of a fedmpi run"):
        load_run(tmp_path / "other.h5")


def test_a_newer_schema_is_refused(case):
    with h5py.File(case / "run.h5", "r+") as file:
        file.attrs["schema_version"] = 5
    with pytest.raises(BadInput, match="written in schema 5, this fedmpi reads up to 4; update fedmpi"):
        load_run(case)


def test_every_dataset_of_a_run_explains_itself(fedmpi, tiny_suite, tmp_path):
    """To those who open it with a tool for HDF5."""
    assert fedmpi("run", tiny_suite, "--case", "fedavg", "--out", "runs").returncode == 0
    found = {}
    with h5py.File(tmp_path / "runs" / "fedavg" / "run.h5") as file:
        file.visititems(lambda place, item: found.update({place: item}))
        for place, data in found.items():
            if isinstance(data, h5py.Dataset):
                about, bare = data.attrs, f"partition: {place.removeprefix('partition/')}"
                assert about["unit"] and about["meaning"] not in (b"", bare.encode()), place
                kind = b"measurement" if place.startswith("lives/") else b"result"
                assert about.get("kind", kind) == kind, place
                assert about.get("better", b"") in (b"higher", b"lower", b""), place
                assert data.chunks is None  # contiguous: laid out in full, written in place
        assert found["lives/0/phase_seconds"].attrs["phases"][0] == b"train"
        assert found["lives/0/collective_calls"].attrs["collectives"][0] == b"Bcast"
