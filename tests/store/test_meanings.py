"""A record explains itself to those who open it with a tool for HDF5."""

import h5py


def test_every_dataset_of_a_real_run_says_its_unit_and_its_meaning(fedmpi, tiny_suite, tmp_path):
    assert fedmpi("run", tiny_suite, "--case", "fedavg", "--out", "runs").returncode == 0
    lacking = []
    bare = []

    def look(name, item):
        if isinstance(item, h5py.Dataset):
            unit, meaning = item.attrs.get("unit"), item.attrs.get("meaning")
            lacking.extend([name] if not unit or not meaning else [])
            bare.extend([name] if meaning == f"partition: {name.removeprefix('partition/')}".encode() else [])

    with h5py.File(tmp_path / "runs" / "fedavg" / "run.h5") as file:
        file.visititems(look)
    assert lacking == []
    assert bare == []
