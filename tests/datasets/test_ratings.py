"""Ratings: made archives, damaged ones, the real ones."""

import gzip
import io
import tarfile

import pytest

from fedmpi.datasets.families.recommender import read_ratings
from fedmpi.datasets.source import DataSource
from tests.refusals import refused

MADE = {
    # users 10, 20, 30 are nodes 0, 2, 1; items 1 to 5 are nodes 3 to 7
    "user.dict": "10 0\n20 2\n30 1\n",
    "item.dict": "1 3\n2 4\n3 5\n4 6\n5 7\n",
    "category.dict": "3 9\n4 9\n5 9\n6 4\n7 4\n",
    # category 9: 10-1, 10-2, 20-2 and apart from these 30-3; category 4: 20-4, 30-5, 10-5
    "graph.txt": "20 4 1\n10 1 4\n10 2 2.5\n20 2 5\n10 2 1\n30 3 3\n30 5 2\n10 5 0\n",
}


@pytest.fixture
def make(tmp_path):
    """Return a function that writes the made archive with some members changed, None for left out."""

    def write(**changed):
        path = tmp_path / "made.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name, text in (MADE | {key.replace("_", "."): text for key, text in changed.items()}).items():
                if text is not None:
                    info = tarfile.TarInfo(f"made/{name}")
                    info.size = len(text)
                    archive.addfile(info, io.BytesIO(text.encode()))
        return path

    return write


def test_a_graph_for_each_category_with_its_largest_component(make):
    raw = read_ratings(make(), "made")
    assert raw.topology.graph_ptr.tolist() == [0, 3, 7]
    assert raw.node_rows.tolist() == [0, 1, 7, 0, 2, 3, 4]
    assert raw.places.tolist() == [[0, 2], [1, 2], [3, 5], [3, 6], [4, 6]]
    assert raw.labels.tolist() == [[0], [2], [4], [2.5], [5]]
    assert raw.topology.row_ptr.tolist() == [0, 1, 2, 4, 6, 7, 8, 10]
    assert raw.topology.columns.tolist() == [2, 2, 0, 1, 5, 6, 6, 3, 3, 4]
    assert (raw.examples, raw.task, raw.class_names) == ("edge", "regression", ("rating",))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"graph_txt": None}, "holds no graph.txt"),
        ({"user_dict": ""}, "holds no user.dict with numbers"),
        ({"graph_txt": "10 1 x\n"}, "graph.txt: holds something else than numbers"),
        ({"graph_txt": "10 1\n"}, "graph.txt: must have user, item and a finite rating"),
        ({"graph_txt": "10 1 nan\n"}, "graph.txt: must have user, item and a finite rating"),
        ({"graph_txt": "10 1 4\n11 1 4\n"}, "graph.txt: users: row 2 has 11, which has no number"),
        ({"graph_txt": "10 9 4\n"}, "graph.txt: items: row 1 has 9, which has no number"),
        ({"graph_txt": "nan 1 4\n"}, "graph.txt: users: row 1 has nan"),
        ({"user_dict": "10 0\n10 2\n30 1\n"}, "user.dict: numbers something twice"),
        ({"user_dict": "10 0\n20 2\n30 -1\n"}, "user.dict: must have two whole numbers"),
        ({"user_dict": "10 0\n20 2\n30 1.5\n"}, "user.dict: must have two whole numbers"),
        ({"user_dict": "10 0\n20 2\n30 3\n"}, "must number 8 nodes from 0, each once"),
        ({"category_dict": "3 9\n4 9\n5 9\n6 4\n"}, "must have one row for each of the 5 items"),
        ({"category_dict": "2 9\n4 9\n5 9\n6 4\n7 4\n"}, "category.dict: must have one row for each"),
    ],
)
def test_inconsistent_archives_are_one_line(make, changed, message):
    path = make(**changed)
    with refused("made.tar.gz", match=message):
        read_ratings(path, "made")


@pytest.mark.parametrize("keep", [0, 10, 100, -20])
def test_cut_archive_is_refused(make, keep):
    path = make()
    path.write_bytes(path.read_bytes()[:keep])
    with refused(match="is cut short or damaged"):
        read_ratings(path, "made")


def test_archive_that_unpacks_to_more_than_any_is_refused(tmp_path):
    path = tmp_path / "made.tar.gz"
    info = tarfile.TarInfo("made/other")
    info.size = 65 << 20
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(info.tobuf())
        for _ in range(65):
            file.write(bytes(1 << 20))
    with refused(match="holds more than 67,108,864 bytes"):
        read_ratings(path, "made")


def test_absent_archive_says_where_it_belongs(tmp_path):
    with refused(match=r"Ciao needs fedgraphnn_ciao.tar.gz: set FEDMPI_MIRROR=DIR, with it in"):
        DataSource(tmp_path).check("Ciao")
