"""Knowledge graphs: made files, damaged ones, the real ones."""

import pytest

from fedmpi.datasets.families.knowledge_graphs import FILES, read_triples
from fedmpi.datasets.names import family_of
from tests.refusals import refused

MADE = {
    "train.txt": "b\tlikes\ta\na\tlikes\tb\na\tis\ta\nc\tis\ta\n",
    "valid.txt": "d\tlikes\ta\r\n",
    "test.txt": "b\tknows\tc",
}


@pytest.fixture
def make(tmp_path):
    """Return a function that writes the made graph with some files changed."""

    def write(**changed):
        for file in FILES:
            content = changed.get(file.split(".")[0], MADE[file])
            (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return write


def test_triples_are_examples_and_training_ones_are_edges(make):
    raw = read_triples(make(), "made")
    assert raw.places.tolist() == [[1, 0], [0, 1], [0, 0], [2, 0], [3, 0], [1, 2]]
    assert raw.class_names == ("is", "knows", "likes")
    assert raw.labels.tolist() == [2, 2, 0, 0, 2, 1]
    assert raw.parts.tolist() == [0, 0, 0, 0, 1, 2]
    assert raw.topology.graph_ptr.tolist() == [0, 4]
    assert raw.topology.row_ptr.tolist() == [0, 2, 3, 4, 4]
    assert raw.topology.columns.tolist() == [1, 2, 0, 0]
    assert (raw.examples, raw.task) == ("edge", "classification")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"train": ""}, "train.txt is empty"),
        ({"test": "\n\n"}, "test.txt is empty"),
        ({"valid": "a\tb\tc\na\tb\n"}, "valid.txt: triple 2 is not head, relation and tail"),
        ({"valid": "a\tb\tc\td\n"}, "valid.txt: triple 1 is not"),
        ({"valid": "a\t\tc\n"}, "valid.txt: triple 1 is not"),
        ({"train": b"a\tb\t\xff\n"}, "train.txt is cut short or damaged"),
    ],
)
def test_damaged_files_are_one_line(make, changed, message):
    folder = make(**changed)
    with refused(match=message):
        read_triples(folder, "made")


def test_a_file_larger_than_any_is_not_read(make):
    folder = make()
    with (folder / "test.txt").open("wb") as file:
        file.truncate((1 << 28) + 1)
    with refused(match=r"test.txt holds more than 268,435,456 bytes"):
        read_triples(folder, "made")


def test_graphs_come_in_three_files_of_their_own_folder():
    family = family_of("WN18RR")
    assert family.files("WN18RR") == tuple(f"WN18RR/original/{file}" for file in FILES)
    assert family.row("YAGO3-10")[-3:] == (1079040, 5000, 5000)
