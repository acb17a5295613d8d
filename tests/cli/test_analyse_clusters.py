"""`fedmpi analyse clusters` on runs that split."""

import json

import pytest

from fedmpi.store.record import RunRecord
from tests.analysis.tasks import FIELDS
from tests.cli.refusals import refused
from tests.started import sets
from tests.test_layers import without_torch

SPLITS = 'algorithm={name="gcfl",warmup=0,eps1=100.0,eps2=0.0}'


def test_what_is_printed_on_a_login_node_and_as_json(fedmpi, tiny_suite, tmp_path):
    """Of a run of GCFL on three synthetic domains, which takes single clients away."""
    fedmpi("run", tiny_suite, "--set", SPLITS, "--out", "runs", code=0)
    command = "analyse clusters runs --walks 60"
    done = without_torch(tmp_path, command)
    lines = [line.split() for line in done.stdout.splitlines()]
    kinds = [line[1] for line in lines if len(line) > 5 and line[1] in ("structure", "features")]
    assert kinds == ["structure", "features"]
    assert "(since round" in done.stdout
    assert "Random: 100 partitions" in done.stdout
    done = fedmpi(*command.split(), "--json")
    printed = json.loads(done.stdout)
    assert (printed["length"], printed["walks"], printed["seed"]) == (4, 60, 0)
    (run,) = printed["runs"]
    first, last = run["clusterings"][0], run["clusterings"][-1]
    assert (run["algorithm"], run["left_out"]) == ("gcfl", 0)
    names = sorted(name for cluster in last["clusters"] for name in cluster)
    assert names == [f"synthetic-{number}" for number in range(3)]
    assert [len(cluster) for cluster in last["clusters"]] == [2, 1]
    assert first["round"] == 1
    assert run["before"]["structure"]["every"]["pairs"] == 120 * 119 // 2
    different = last["structure"]["different"]
    assert different["found"]["pairs"] == 40 * 40
    assert 0 < different["random"]["as_low"] <= 1
    assert last["agreement"] is None  # synthetic domains have no known domain


def test_domains_of_real_datasets(fedmpi, real_data, tmp_path):
    """Two molecule datasets and one of proteins."""
    settings = ["dataset=MUTAG+BZR+ENZYMES", "partition=per-dataset", SPLITS, "rounds=2"]
    fedmpi("run", "gcfl/proteins", *sets(*settings), "--out", "runs", code=0)
    done = fedmpi("analyse", "clusters", "runs", "--walks", "60", "--json")
    (run,) = json.loads(done.stdout)["runs"]
    last = run["clusterings"][-1]
    assert last["clusters"] == [["MUTAG", "BZR"], ["ENZYMES"]]
    assert last["agreement"]["adjusted_rand_index"] == 1
    assert last["agreement"]["random"]["as_high"] == pytest.approx(1 / 3, abs=0.15)
    assert run["before"]["structure"]["every"]["mean"] > last["structure"]["every"]["found"]["mean"]


def test_mistakes_are_told_in_one_line(fedmpi, tmp_path):
    about = {"config": {}, "clients": ["c"], "rounds": 3, "partition": {}}
    RunRecord.create(tmp_path / "new", **about, extra=FIELDS["accuracy"]).close()
    for arguments, words in (
        (["new"], "no round is finished"),
        (["none"], "no such file or folder"),
        (["new", "--length", "9"], "2 to 7 steps"),
        (["new", "--walks", "0"], "1 to 1000000 walks"),
    ):
        refused(fedmpi("analyse", "clusters", *arguments), words)


def test_distances_are_between_graphs_not_between_nodes(fedmpi):
    started = ("run", "nodes/first", "--case", "0", "--set", "rounds=1", "--out", "runs")
    fedmpi(*started, code=0)
    words = "its clients hold nodes of synthetic-nodes; leave it out"
    refused(fedmpi("analyse", "clusters", "runs"), words)
    refused(fedmpi("plot", "within-clusters", "runs", "--image", "picture.svg"), words)
