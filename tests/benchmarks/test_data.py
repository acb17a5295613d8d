from dataclasses import replace

import pytest

from fedmpi.benchmarks.data import measure, peak_bytes
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput

BALLAST = 300 << 20


@pytest.fixture(scope="module")
def measurements(real_data):
    """MUTAG's stages, measured by a process that holds 300 MB itself."""
    ballast = bytearray(BALLAST)  # a child's getrusage would start with it
    ballast[:: 1 << 12] = b"1" * len(ballast[:: 1 << 12])
    assert peak_bytes() > BALLAST
    return measure(["MUTAG"], DataSource.from_environment(), repetitions=1).measurements


def test_stages_of_a_dataset_and_of_a_group(measurements):
    labels = [(each.labels["process"], each.labels["stage"]) for each in measurements]
    assert labels == [
        ("parse", "parse"),
        ("prepare", "prepare"),
        ("clients", "load"),
        ("clients", "partition"),
        ("clients", "pack"),
    ]
    for each in measurements:
        assert {len(samples.values) for samples in each.figures.values()} == {1}
        units = {name: samples.unit for name, samples in each.figures.items()}
        assert units == {"wall_seconds": "s", "cpu_seconds": "s", "peak_bytes": "B", "added_bytes": "B"}
        assert each.figures["peak_bytes"].minimum > 20e6


def test_peak_memory_is_the_process_s_own(measurements):
    parse, *_ = measurements
    assert parse.figures["peak_bytes"].maximum < BALLAST


def test_archives_come_from_a_mirror(source, tmp_path):
    with pytest.raises(BadInput, match="give --mirror"):
        measure(["MUTAG"], source, repetitions=1)
    with pytest.raises(BadInput, match="no such archive"):
        measure(["MUTAG"], replace(source, mirror=tmp_path), repetitions=1)
    with pytest.raises(BadInput, match="has no files"):
        measure(["synthetic"], source, repetitions=1)
