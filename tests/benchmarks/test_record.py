import pytest

from fedmpi.benchmarks.record import measure
from fedmpi.benchmarks.samples import Turns
from fedmpi.errors import BadInput
from fedmpi.store.schema import axis_sizes, measurement_fields, result_fields
from fedmpi.tasks.graph_classification import FIELDS


def test_parts_are_measured_apart_with_the_bytes_of_their_rows_and_leave_nothing(tmp_path):
    report = measure([3, 5], tmp_path, Turns(2, 1))
    found = {(each.labels["part"], each.labels["clients"]): each.figures for each in report.measurements}
    parts = ("events", "hdf5", "record", "record by 16", "checkpoint")
    assert list(found) == [(part, clients) for clients in (3, 5) for part in parts]
    for figures in found.values():
        assert {len(samples.values) for samples in figures.values()} == {2}
        assert figures["seconds"].unit == "s"
    assert list(tmp_path.iterdir()) == []
    sizes = {part: found[part, 5]["round_bytes"].median for part in parts[:4]}
    fields = {**result_fields(FIELDS), **measurement_fields()}.values()
    shapes = [field.shape(axis_sizes(5, 3, 5)) for field in fields]
    rows = [field.blank(shape).nbytes for field, shape in zip(fields, shapes, strict=True)]
    assert sizes["hdf5"] == sum(rows)
    assert sizes["record"] == pytest.approx(sizes["events"] + sizes["hdf5"], rel=0.01)
    assert sizes["record by 16"] == pytest.approx(sizes["record"], rel=0.02)
    written = found["checkpoint", 5]["checkpoint_bytes"].median
    assert written == pytest.approx(5 * 12 * 29_506, rel=0.01)


def test_a_folder_that_cannot_be_written_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="choose another --out"):
        measure([3], tmp_path / "missing", Turns(1, 0))
