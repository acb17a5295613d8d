"""Archives and tables that unpack into more than any such dataset holds are not read."""

import gzip
import zipfile
from dataclasses import replace

from fedmpi.datasets import bounds, download, smiles
from fedmpi.datasets.families.moleculenet import MOLECULES
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.tables import KNOWN
from fedmpi.datasets.tu import check_archive, read_archive
from tests.refusals import refused

BLOCK = b"1, 1\n" * 200_000


def test_every_known_dataset_fits_several_times(mirror):
    for name, facts in KNOWN.items():
        with zipfile.ZipFile(mirror / "tudataset" / f"{name}.zip") as archive:
            parts = [info.file_size for info in archive.infolist() if info.filename.endswith(".txt")]
        assert 3 * sum(parts) < bounds.most_text(facts), name


def test_a_known_datasets_archive_holds_no_more_than_its_sizes_allow(make_archive, toy):
    """MUTAG's files have 0.1 MB, 1.9 MB are allowed."""
    archive = make_archive("MUTAG", {**toy, "A": BLOCK.decode() * 3})
    for step in (check_archive, lambda path, stem: read_archive(path, stem, stem)):
        with refused(match=r"MUTAG.zip holds more than 1,887,104 bytes"):
            step(archive, "MUTAG")


def test_any_other_archive_holds_no_more_than_the_limit(make_archive, toy, monkeypatch):
    monkeypatch.setattr(bounds, "MOST_TEXT_BYTES", 1_000_000)
    with refused(match=r"FOO.zip holds more than 1,000,000 bytes, which no such file has"):
        check_archive(make_archive("FOO", {**toy, "A": BLOCK.decode()}), "FOO")


def test_a_table_of_molecules_is_unpacked_no_further_than_its_rows_allow(tmp_path):
    facts = replace(MOLECULES["SIDER"], rows=10)
    header = b"smiles," + b",".join(b"%d" % task for task in range(27)) + b"\n"
    path = tmp_path / "sider.csv.gz"
    with gzip.open(path, "wb") as stream:
        stream.write(header)
        for _ in range(20):
            stream.write(b"C" * 100_000 + b"," * 27 + b"\n")
    with refused(match=r"sider.csv.gz holds more than 229,376 bytes"):
        smiles.read_molecules(path, facts)
    with gzip.open(path, "wb") as stream:
        stream.write(header + b"C,1\n" * 40)
    with refused(match="has more than 10 rows, SIDER has 10"):
        smiles.read_molecules(path, facts)


def test_a_download_ends_at_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "MOST_DOWNLOAD_BYTES", 1000)
    (tmp_path / "FOO.zip").write_bytes(bytes(5000))
    source = DataSource(tmp_path / "cache", upstream=tmp_path.as_uri())
    with refused(match=r"FOO.zip holds more than 1,000 bytes"):
        source.prepare("FOO")
    assert list((tmp_path / "cache" / "tudataset").iterdir()) == []
