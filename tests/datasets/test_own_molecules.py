"""Tables of one's own molecules."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from fedmpi.datasets import molecule_tables
from fedmpi.datasets.names import family_of
from fedmpi.datasets.raw import digest
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.partition.options import Given, Iid
from fedmpi.partition.partition import make
from tests.refusals import refused, table

PLAIN = "smiles,label\nCCO,toxic\nc1ccccc1,safe\nc1ccc,safe\nCC,N/A\nC,toxic\n"


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a table, and returns a dataset's name: its path and what is said of it."""
    pytest.importorskip("rdkit", reason="the extra molecules is not installed")

    def write(text, said=""):
        (tmp_path / "mine.csv").write_text(text, encoding="latin-1")
        return f"{tmp_path}/mine.csv{said}"

    return write


@pytest.fixture
def source(tmp_path):
    return DataSource(tmp_path / "cache", offline=True)


@pytest.fixture
def read(write, source):
    """Return a function that writes, prepares and loads a table."""

    def read(text, said=""):
        name = write(text, said)
        source.check(name)
        source.prepare(name)
        return source.load(name)

    return read


def test_two_columns_are_enough_and_rows_that_cannot_be_read_are_named(read, source):
    raw = read(PLAIN)
    assert (raw.task, raw.class_names, raw.labels.tolist()) == (
        "classification",
        ("safe", "toxic"),
        [1, 0, 1],
    )
    assert raw.topology.graph_ptr.tolist() == [0, 3, 9, 10]
    assert raw.scaffolds.tolist() == [0, 1, 0]
    assert raw.refused == ("row 3: no molecule: c1ccc", "row 4: no label: CC")
    assert source.verify(raw.name) == digest(raw)


def test_a_file_is_the_known_set_of_its_content(source, real_data):
    pytest.importorskip("rdkit", reason="the extra molecules is not installed")
    mirror = Path(os.environ["FEDMPI_MIRROR"]) / "moleculenet"
    names = f"{mirror}/SAMPL.csv?label=expt", f"{mirror}/clintox.csv.gz?label=*"
    known = DataSource(source.cache, mirror.parent)
    for own, name in zip(names, ("FreeSolv", "ClinTox"), strict=True):
        for each in (own, name):
            known.prepare(each)
        assert known.digest_of(own) == known.digest_of(name)
        assert family_of(own).task(own) == family_of(name).task(name)
        assert known.load(own).class_names == known.load(name).class_names


@pytest.mark.parametrize(
    ("cells", "said", "kind", "names", "labels"),
    [
        ("a\n10\n9\n10.0\n", "?label=a", "classification", ("9", "10"), [1, 0, 1]),
        ("a\n0.5\n1\n-2\n", "?label=a", "regression", ("a",), [[0.5], [1], [-2]]),
        ("a\n5\n1\n2\n", "?label=a&task=regression", "regression", ("a",), [[5], [1], [2]]),
        ("a\n0\n1\n1\n", "?label=a&task=multi-label", "multi-task", ("a",), [[0], [1], [1]]),
        ("a,b\n0,1\n1,\nnan,0\n", "?label=b&label=a", "multi-task", ("b", "a"), [[1, 0], [-1, 1], [0, -1]]),
        ("a,b\n0,1\n1,\n,7\n", "?label=*", "regression", ("a", "b"), [[0, 1], [1, -1], [-1, 7]]),
    ],
)
def test_the_values_of_labels_say_what_they_are(read, cells, said, kind, names, labels):
    raw = read(
        "\n".join(f"{mol},{row}" for mol, row in zip(["smiles", "C", "CC", "O"], cells.split(), strict=True)),
        said,
    )
    assert (raw.task, raw.class_names) == (kind, names)
    assert np.nan_to_num(raw.labels, nan=-1).tolist() == labels


def test_columns_may_have_other_names_and_files_be_packed(tmp_path, write, source):
    write(PLAIN)
    (tmp_path / "mine.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfMol,a+b c?\nCCO,1\nC,0\n"))
    name = f"{tmp_path}/mine.csv.gz?smiles=Mol&label=a+b c?"
    source.prepare(name)
    assert source.load(name).labels.tolist() == [1, 0]


def test_an_sdf_file_is_what_rdkit_reads(source, tmp_path):
    chemistry = pytest.importorskip("rdkit.Chem", reason="the extra molecules is not installed")
    path = tmp_path / "mine.sdf"
    with chemistry.SDWriter(str(path)) as writer:
        for number, smiles in enumerate(("CCO", "c1ccccc1[N+](=O)[O-]", "C[C@H](N)C(=O)O", "CF")):
            one = chemistry.AddHs(chemistry.MolFromSmiles(smiles))
            for key, value in {
                "_Name": f"no. {number}",
                "logP": str(number / 2),
                "client": "xyxy"[number],
            }.items():
                one.SetProp(key, value)
            writer.write(one)
    path.write_text(path.read_text().replace(" F ", " Qq").replace(">  <logP>  (2)", ">  25 <logP>\r"))
    source.prepare(name := f"{path}?label=logP")
    raw, known = source.load(name), list(chemistry.SDMolSupplier(str(path)))
    assert (known.pop(), raw.refused) == (None, ("row 4: no molecule: no. 3",))
    assert raw.node_labels[:, 0].tolist() == [a.GetAtomicNum() for one in known for a in one.GetAtoms()]
    assert np.array_equal(
        np.diff(raw.topology.row_ptr), [a.GetDegree() for one in known for a in one.GetAtoms()]
    )
    assert raw.labels[:, 0].tolist() == [one.GetDoubleProp("logP") for one in known]
    assert (raw.client_names, raw.clients.tolist(), raw.edge_width) == (("x", "y"), [0, 1, 0], 6)


def test_clients_and_parts_of_the_file_are_kept(read):
    rows = [
        f"{'C' * (n + 1)},{n % 2},site {n % 3},{('train', 'Valid', 'test', '')[n % 4]}" for n in range(24)
    ]
    raw = read("\n".join(["smiles,label,client,split", *rows]))
    clients = make(Given(clients=3, parts="dataset"), [raw]).clients
    assert [client.name for client in clients] == ["site 0", "site 1", "site 2"]
    assert clients[1].train.tolist() == [4, 16]
    assert (clients[1].val.tolist(), clients[1].test.tolist()) == ([1, 13], [10, 22])
    assert sorted(make(Given(clients=3), [raw]).clients[2].graphs.tolist()) == list(range(2, 24, 3))
    with refused("has 3 clients: set partition.clients = 3 (got 10)"):
        make(Given(), [raw])
    with refused("does not say whose examples are"):
        make(Given(clients=3), [read(PLAIN)])
    with refused('fixes no parts: use "80/10/10"'):
        make(Iid(clients=1, parts="dataset"), [read(PLAIN)])


def test_an_edit_or_other_columns_ask_for_a_new_preparation(read, source):
    first = read("smiles,label,b\nC,1,2\nCC,2,2\n")
    assert source.status(first.name) == "prepared"
    assert source.status(f"{first.name}?label=b") == "mirror"
    assert read("smiles,label\nC,1\nCC,1\nCCC,2\n").num_graphs == 3


BAD = table(
    """
smiles,y\\nC,1                     -> no column 'label' (there are: smiles, y): name it, as in ./mine.csv?label=NAME
SMILES,label\\nC,1                 -> no column 'smiles'
smiles,label,label\\nC,1,2         -> has two columns 'label'
smiles,label                      -> has no rows
smiles,label\\nC,\\nC,nan           -> no label is there
smiles,label\\nC,inf\\nC,1          -> a label is infinite
smiles,label\\nfoo,1               -> no row holds a molecule with a label
smiles,label,client\\nC,1,a\\nC,1,  -> row 2 has no client: every row needs one
smiles,label\\nC,a\\nC,b\\ac       -> 'b\\x07c' cannot be a name
smiles,label,split\\nC,1,dev       -> column 'split': row 1: 'dev' is none of train, val
smiles,label\\n"C,1                -> is cut short or damaged: unexpected end of data
smiles,label\\n\\ff,1               -> is cut short or damaged: 'utf-8' codec
"""
)


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_table_that_cannot_be_read_is_refused_and_leaves_nothing(write, source, text, words):
    name = write(text.replace("\\n", "\n").replace("\\ff", "\xff").replace("\\a", "\a"))
    with refused(words):
        source.prepare(name)
    assert not source.cache.exists()


SAID = table(
    """
?lable=a                     -> there is no "lable" (valid: smiles, label, client, split, weight, task)
?label                       -> say it as in ./mine.csv?smiles=mol&label=toxic
?task=ranking                -> there is no task "ranking" (valid: classification, multi-label, regression)
?smiles=a&smiles=b           -> only label may be said several times
?label=a&label=text          -> row 1, column 'text': 'x' is no number, as others are: leave a gap empty
?label=mixed                 -> row 2, column 'mixed': '?' is no number, as others are
?label=text&task=regression  -> task=regression needs numbers
?label=a&task=classification -> task=classification needs one column of whole numbers or text
?label=a&client=site         -> no column 'site'
"""
)


@pytest.mark.parametrize(("said", "words"), SAID)
def test_what_is_said_of_columns_must_be_true(write, said, words):
    name = write("smiles,a,text,mixed\nC,0.5,x,0.5\nCC,1,y,?\n", said)
    with refused(words):
        family_of(name).check(Path(name.partition("?")[0]), name)


def test_a_huge_table_is_refused(write, source, monkeypatch):
    monkeypatch.setattr(molecule_tables, "_MOST_BYTES", 50)
    with refused("mine.csv holds more than 50 bytes"):
        source.check(write(PLAIN))


def test_many_whole_numbers_are_classes_or_not_as_is_said(read):
    text = "\n".join(["smiles,label", *(f"C,{n}" for n in range(101))])
    with refused("101 whole numbers: say task=regression behind the path, as in ./mine.csv?task=regression"):
        read(text)
    assert read(text, "?task=regression").task == "regression"
    assert read(text, "?task=classification").num_classes == 101


def test_a_row_with_too_many_cells_is_left_out(read):
    assert read("smiles,label\nC,1,2\nCC,1\nC\n").refused == (
        "row 1: more cells than the header: C",
        "row 3: no label: C",
    )


def test_no_file_is_said(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refused(f"no file {tmp_path}/mine.csv"):
        source.check("./mine.csv")
    (tmp_path / "mine.csv").write_text(PLAIN)
    with pytest.raises(BadInput, match=r"did you mean \./mine\.csv\?"):
        source.check("mine.csv")


def test_weights_of_rows_are_read_where_they_are_there(read):
    text = "smiles,label,weight,mass\nC,0,2,9\nC(,0,1,9\nCC,1,0.5,9\nCCC,,,9\n"
    assert read(text).weights.tolist() == [2.0, 0.5]
    assert read(text, "?weight=mass").weights.tolist() == [9.0, 9.0]
    assert read(text, "?label=weight&task=regression").weights is None
    assert read(text.replace("weight", "other")).weights is None
    assert digest(read(text)) != digest(read(text.replace("0.5", "0.6")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("smiles,label,weight\nC,0,\n", "row 1: '' is no weight: each row needs one, 0 or more"),
        ("smiles,label,weight\nC,0,1\nC,1,-1\n", "row 2: '-1' is no weight"),
        ("smiles,label,weight\nC,0,nan\n", "row 1: 'nan' is no weight"),
        ("smiles,label,weight\nC,0,1e99\n", "row 1: '1e99' is no weight"),
        ("smiles,label,weight\nC,0,0\n", "no row has a weight above 0"),
        ("smiles,label\nC,0\n?weight=w", "has no column 'w'"),
    ],
)
def test_wrong_weights_are_refused(read, text, words):
    table, _, said = text.partition("?")
    with refused(words):
        read(table, f"?{said}" if said else "")
