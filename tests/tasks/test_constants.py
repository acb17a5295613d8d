"""What a constant prediction scores at each client: by hand, in the record's provenance, in reports and rows."""

import json
import tomllib

import numpy as np
import pytest

import fedmpi
from fedmpi.analysis import rows
from fedmpi.analysis.summary import per_client, summarise
from fedmpi.store.reader import load_run
from fedmpi.tasks.graph_classification import GraphClassification
from tests.making import client, labelled, without_edges

LABELS = np.array([0, 0, 0, 1, 1, 2, 1, 0, 2])


@pytest.mark.parametrize(
    ("train", "test", "expected"),
    [
        ([0, 1, 3], [2, 4, 7], 2 / 3),  # predicts 0; the test has 0, 1, 0
        ([0, 3], [4, 6], 0.0),  # of equal classes the first, 0; the test has 1, 1
        ([5], [8], 1.0),
        ([0], [], None),
        ([], [0], None),
    ],
)
def test_by_hand(train, test, expected):
    raw, of = labelled(without_edges(*[1] * 9), LABELS, "012"), client(train, test=test)
    assert GraphClassification.constants(GraphClassification, [raw], [of]) == {"accuracy": [expected]}


SUITE = """
[case]
dataset = { name = "synthetic", synthetic = { domains = 2, graphs = 40 } }
partition = "per-dataset"
rounds = 1
[matrix]
how = [{ label = "full", reduction = "exact" }, { label = "protocol", reduction = "secagg", record = "protocol" }]
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("floor")
    fedmpi.run(tomllib.loads(SUITE), out=folder, quiet=True)
    return {name: load_run(folder / name) for name in ("full", "protocol")}


def test_reports_and_rows_have_it(runs):
    run = runs["full"]
    split = run.partition
    counted = json.loads(json.dumps(run.attempts[0].provenance["constants"]))["accuracy"]
    assert len(counted) == len(run.clients) == 2 and all(0 < each < 1 for each in counted)
    tests = np.diff(split["test_ptr"])
    right = np.array(counted) * tests
    assert right == pytest.approx(np.round(right))
    assert [row["constant"] for row in per_client(run)] == counted
    assert summarise(run)["constant"] == pytest.approx(np.mean(counted))
    assert [row["constant_score"] for row in rows.client_rows(run)] == counted


def test_where_no_single_clients_are_recorded_there_is_none(runs):
    assert runs["protocol"].attempts[0].provenance["constants"] == {}
    assert np.isnan(summarise(runs["protocol"])["constant"])
