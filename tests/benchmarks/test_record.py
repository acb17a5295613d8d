import pytest

from fedmpi.benchmarks.record import measure
from fedmpi.errors import BadInput
from fedmpi.store.schema import axis_sizes, measurement_fields, result_fields
from fedmpi.tasks.graph_classification import FIELDS


def test_parts_are_measured_apart_and_leave_nothing(tmp_path):
    report = measure([3, 7], tmp_path, repetitions=2, warmup=1)
    found = [(each.labels["part"], each.labels["clients"]) for each in report.measurements]
    parts = ("events", "hdf5", "record", "record by 16", "checkpoint")
    assert found == [(part, clients) for clients in (3, 7) for part in parts]
    for each in report.measurements:
        assert {len(samples.values) for samples in each.figures.values()} == {2}
        assert each.figures["seconds"].unit == "s"
    assert list(tmp_path.iterdir()) == []


def test_bytes_are_those_of_the_rows(tmp_path):
    events, hdf5, record, held, checkpoint = (
        each.figures for each in measure([5], tmp_path, repetitions=1, warmup=0).measurements
    )
    sizes = axis_sizes(5, 3, 5)
    fields = {**result_fields(FIELDS), **measurement_fields()}.values()
    assert hdf5["round_bytes"].median == sum(field.blank(field.shape(sizes)).nbytes for field in fields)
    assert record["round_bytes"].median == pytest.approx(
        events["round_bytes"].median + hdf5["round_bytes"].median, rel=0.01
    )
    assert held["round_bytes"].median == pytest.approx(record["round_bytes"].median, rel=0.02)
    assert checkpoint["checkpoint_bytes"].median == pytest.approx(5 * 12 * 29_506, rel=0.01)


def test_a_folder_that_cannot_be_written_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="choose another --out"):
        measure([3], tmp_path / "missing", repetitions=1, warmup=0)
