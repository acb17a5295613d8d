"""``fedmpi paper select``: winners by validation, run again with other seeds by one command."""

from __future__ import annotations

from fedmpi.cli.paper import free_seeds
from fedmpi.store.reader import load_run
from tests.cli.refusals import refused
from tests.mpi.molecules import prepare

SUITE = """
name = "demo/sweep"
description = "two rates"
[case]
rounds = 2
batch_size = 16
share = "all"
dataset = { name = "ESOL", targets = "standardised" }
partition = { name = "fedgraphnn", alpha = 2.0 }
model = "fedgraphnn/gcn"
[matrix]
"optimizer.lr" = [0.01, 0.0001]
"""


def test_winners_of_a_part_and_of_the_whole_are_named_and_run_again(fedmpi, tmp_path):
    (tmp_path / "sweep.toml").write_text(SUITE)
    data = prepare(tmp_path / "data")
    fedmpi("run", "sweep.toml", "--case", "1", "--data", data, code=0)
    part = fedmpi("paper", "select", "sweep.toml", "--write", "winners.toml")
    assert "1 of 2 cases are complete; the winners are of these." in part.stdout
    assert "seed = [1, 2, 3]" in (tmp_path / "winners.toml").read_text()
    chosen = fedmpi("paper", "select", "sweep.toml", "--set", "optimizer.lr=0.0001")
    assert (chosen.returncode, "cases are complete" in chosen.stdout) == (0, False)
    for place, words in (
        ("sweep.toml", "none of its 1 cases has run; run: fedmpi sweep sweep.toml"),
        ("results", "results is no suite: name the suite"),
    ):
        refused(fedmpi("paper", "select", place, "--set", "optimizer.lr=0.01"), words)
    fedmpi("run", "sweep.toml", "--data", data, code=0)
    done = fedmpi("paper", "select", "demo/sweep", "--seeds", "5", "--rerun", "--data", data, code=0)
    assert "optimizer.lr=" in done.stdout
    (folder,) = (tmp_path / "results" / "runs" / "demo" / "sweep-winners").iterdir()
    again = load_run(folder)
    assert (again.config["seed"], again.status) == (5, "complete")
    assert again.config["optimizer"]["lr"] in (0.01, 0.0001)


def test_winners_run_again_with_seeds_that_the_sweep_has_not(fedmpi):
    assert free_seeds([1, 1]) == [2, 3, 4]
    assert free_seeds([3, 1]) == [2, 4, 5]
    refused(fedmpi("paper", "select", ".", "--seeds", "a,b"), "--seeds a,b: give whole numbers from 0 to")
