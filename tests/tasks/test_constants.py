"""What a constant prediction scores at each client: by hand, in the record's provenance, in reports and rows."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import fedmpi
from fedmpi.analysis import rows, scores
from fedmpi.analysis.summary import per_client, summarise
from fedmpi.datasets.raw import RawGraphs
from fedmpi.graphs.packed import Topology
from fedmpi.partition.partition import ClientSplit
from fedmpi.store.reader import load_run
from fedmpi.tasks.graph_classification import GraphClassification

LABELS = np.array([0, 0, 0, 1, 1, 2, 1, 0, 2])


def client(train, test):
    return ClientSplit(
        "a", 0, np.array(train, np.int64), np.zeros(0, np.int64), np.array(test, np.int64), True
    )


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
    topology = Topology(np.arange(10), np.zeros(10, np.int64), np.zeros(0, np.int64))
    raw = RawGraphs("TOY", topology, None, (), None, LABELS, ("0", "1", "2"))
    assert GraphClassification.constants(GraphClassification, [raw], [client(train, test)]) == {
        "accuracy": [expected]
    }


SUITE = {
    "name": "floor",
    "case": {
        "dataset": {"name": "synthetic", "synthetic": {"domains": 2, "graphs": 40}},
        "partition": "per-dataset",
        "rounds": 1,
    },
    "matrix": {
        "how": [
            {"label": "full", "reduction": "exact"},
            {"label": "protocol", "reduction": "secagg", "record": "protocol"},
        ]
    },
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("floor")
    fedmpi.run(SUITE, out=folder, quiet=True)
    return {name: load_run(folder / name) for name in ("full", "protocol")}


def test_reports_and_rows_have_it(runs):
    run = runs["full"]
    split = run.partition
    counted = json.loads(json.dumps(run.attempts[0].provenance["constants"]))["accuracy"]
    assert len(counted) == len(run.clients) == 2 and all(0 < each < 1 for each in counted)
    tests = np.diff(split["test_ptr"])
    assert [each * size for each, size in zip(counted, tests, strict=True)] == pytest.approx(
        [round(each * size) for each, size in zip(counted, tests, strict=True)]
    )
    assert [row["constant"] for row in per_client(run)] == counted
    assert summarise(run)["constant"] == pytest.approx(np.mean(counted))
    assert [row["constant_score"] for row in rows.client_rows(run)] == counted


def test_where_no_single_clients_are_recorded_there_is_none(runs):
    assert runs["protocol"].attempts[0].provenance["constants"] == {}
    assert np.isnan(summarise(runs["protocol"])["constant"])


@pytest.mark.parametrize(
    "strange", [None, [], {"accuracy": 1}, {"accuracy": [0.5]}, {"accuracy": ["a", None]}]
)
def test_a_record_that_says_something_else_has_none(runs, strange):
    (attempt,) = runs["full"].attempts
    changed = replace(attempt, provenance={**attempt.provenance, "constants": strange})
    run = replace(runs["full"], attempts=(changed,))
    assert np.isnan(scores.constant(run, run.headline))
