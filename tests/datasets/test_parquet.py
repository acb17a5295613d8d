"""Tables of one's own molecules in Parquet files."""

import datetime
import sys
from decimal import Decimal

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

from fedmpi.datasets import molecule_tables
from fedmpi.datasets.names import family_of
from fedmpi.datasets.raw import digest
from fedmpi.datasets.source import DataSource
from tests.refusals import refused

PLAIN = {"smiles": ["CCO", "c1ccccc1", "c1ccc", "CC", "C"], "label": ["toxic", "safe", "safe", None, "toxic"]}


@pytest.fixture
def source(tmp_path):
    return DataSource(tmp_path / "cache", offline=True)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes columns, and returns the name of a dataset."""

    def write(columns, said="", **how):
        table = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
        pyarrow.parquet.write_table(table, tmp_path / "mine.parquet", **how)
        return f"{tmp_path}/mine.parquet{said}"

    return write


@pytest.fixture
def read(write, source):
    """Return a function that writes, prepares and loads columns."""

    def read(columns, said="", **how):
        name = write(columns, said, **how)
        source.check(name)
        source.prepare(name)
        assert family_of(name).task(name) == source.load(name).task
        return source.load(name)

    return read


def test_a_table_is_that_of_the_same_text(read, source, tmp_path):
    split, client = ["train", "val", None, "test", "test"], [2, 10, 2, 2, 10]
    raw = read({**PLAIN, "split": split, "client": client}, compression="zstd", row_group_size=2)
    pandas.DataFrame({**PLAIN, "split": split, "client": client}).to_csv(tmp_path / "mine.csv", index=False)
    name = f"{tmp_path}/mine.csv"
    source.prepare(name)
    assert digest(raw) == source.digest_of(name)
    assert (raw.client_names, raw.class_names) == (("2", "10"), ("safe", "toxic"))
    assert raw.refused == ("row 3: no molecule: c1ccc", "row 4: no label: CC")


@pytest.mark.parametrize(
    ("cells", "kind", "labels"),
    [
        (np.array([1, 0], np.uint8), "classification", [1, 0]),
        ([1.0, None, 0.0], "classification", [1, 0]),
        ([True, False], "classification", [1, 0]),
        (np.array([0.5, np.nan, 2], np.float32), "regression", [[0.5], [2]]),
        ([Decimal("0.25"), Decimal("1.00")], "regression", [[0.25], [1]]),
        (pyarrow.array(["b", "a"]).dictionary_encode(), "classification", [1, 0]),
        (pyarrow.array(["b", "a"], pyarrow.large_string()), "classification", [1, 0]),
    ],
)
def test_labels_are_numbers_or_text(read, cells, kind, labels):
    raw = read({"smiles": ["C", "CC", "CCC"][: len(cells)], "label": cells})
    assert (raw.task, raw.labels.tolist()) == (kind, labels)


def test_other_columns_and_the_index_of_a_frame_are_not_read(read):
    frame = pandas.DataFrame(
        {"mol": ["C", "O"], "NR.AR": [1.0, 1.0], "SR/p53": [0, None], "fp": [[1], [3]]}, index=[7, 1]
    )
    table = pyarrow.Table.from_pandas(frame)
    assert "__index_level_0__" in table.column_names
    raw = read(table, "?smiles=mol&label=NR.AR&label=SR/p53")
    assert np.nan_to_num(raw.labels, nan=-1).tolist() == [[1, 0], [1, -1]]
    assert read(table.drop_columns("fp"), "?smiles=mol&label=*").class_names == ("NR.AR", "SR/p53")


@pytest.mark.parametrize(
    ("columns", "said", "words"),
    [
        ({"smiles": ["C"]}, "", "mine.parquet has no column 'label' (there are: smiles)"),
        ({"smiles": ["C"], "label": [[1]]}, "", "column 'label': holds list<"),
        ({"smiles": ["C"], "label": [datetime.date(2020, 1, 1)]}, "", "neither text nor numbers"),
        ({"smiles": [b"C"], "label": [1]}, "", "column 'smiles': holds binary, neither text nor numbers"),
        ({"smiles": pyarrow.array([], "string"), "label": pyarrow.array([], "int8")}, "", "has no rows"),
        ({"smiles": ["C", "O"], "label": [None, None]}, "", "no label is there"),
        ({"smiles": ["C", "O"], "label": [1, np.inf]}, "", "a label is infinite"),
        ({"smiles": ["C", "O"], "label": ["a", "b"]}, "?task=regression", "task=regression needs numbers"),
        ({"smiles": ["C", "O"], "label": [0, 1], "client": ["a", None]}, "", "row 2 has no client"),
        ({"smiles": ["C", "O"], "label": [0, 1], "split": ["dev", ""]}, "", "'dev' is none of train, val"),
        (pyarrow.table([["C"], [1], [1]], ["smiles", "label", "label"]), "", "two columns 'label'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_and_leaves_nothing(write, source, columns, said, words):
    name = write(columns, said)
    with refused(words):
        source.prepare(name)
    assert not source.cache.exists()


def test_a_damaged_file_is_refused(write, source, tmp_path):
    name, path = write(PLAIN), tmp_path / "mine.parquet"
    whole = path.read_bytes()
    for content in (b"", whole[:100], whole[:-20], b"PAR1" * 10, whole[:60] + b"\0" * 40 + whole[100:]):
        path.write_bytes(content)
        with refused(match=r"mine\.parquet is cut short or damaged|labelled"):
            source.check(name)


def test_a_huge_file_is_refused(write, source, monkeypatch):
    monkeypatch.setattr(molecule_tables, "_MOST_BYTES", 5000)
    name = write({"smiles": ["C" * 100] * 100, "label": [0, 1] * 50})
    with refused("mine.parquet holds more than 5,000 bytes"):
        source.check(name)


def test_without_pyarrow_the_extra_is_named(write, source, monkeypatch):
    name = write(PLAIN)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pyarrow" else 1)
    with refused("mine.parquet: pyarrow, which reads it, is missing: pip install 'fedmpi[parquet]'"):
        source.check(name)
