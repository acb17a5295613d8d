"""``fedmpi paper select``: winners by validation, run again with other seeds by one command."""

from __future__ import annotations

from pathlib import Path

from fedmpi.cli.select import free_seeds
from fedmpi.store.reader import Run, load_run
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


def test_the_winner_is_named_and_run_again(fedmpi, tmp_path):
    (tmp_path / "sweep.toml").write_text(SUITE)
    data = prepare(tmp_path / "data")
    assert fedmpi("run", "sweep.toml", "--data", data).returncode == 0
    done = fedmpi("paper", "select", "demo/sweep", "--seeds", "5", "--rerun", "--data", data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "optimizer.lr=" in done.stdout
    (folder,) = (tmp_path / "results" / "runs" / "demo" / "sweep-winners").iterdir()
    again = load_run(folder)
    assert (again.config["seed"], again.status) == (5, "complete")
    assert again.config["optimizer"]["lr"] in (0.01, 0.0001)


def test_a_part_of_a_suite_is_selected_from_and_says_what_is_missing(fedmpi, tmp_path):
    (tmp_path / "sweep.toml").write_text(SUITE)
    data = prepare(tmp_path / "data")
    assert fedmpi("run", "sweep.toml", "--case", "1", "--data", data).returncode == 0
    part = fedmpi("paper", "select", "sweep.toml", "--write", "winners.toml")
    assert "1 of 2 cases are complete; the winners are of these." in part.stdout
    assert "seed = [1, 2, 3]" in (tmp_path / "winners.toml").read_text()
    whole = fedmpi("paper", "select", "sweep.toml", "--set", "optimizer.lr=0.0001")
    assert (whole.returncode, "cases are complete" in whole.stdout) == (0, False)
    for place, words in (
        ("sweep.toml", "none of its 1 cases has run; run: fedmpi sweep sweep.toml"),
        ("results", "results is no suite: name the suite"),
    ):
        refused(fedmpi("paper", "select", place, "--set", "optimizer.lr=0.01"), words)


def test_winners_run_again_with_seeds_that_the_sweep_has_not():
    def run(seed):
        return Run(Path("x"), {"seed": seed}, "", "", 2, "complete", "", 1, 1, (), {}, {}, ())

    assert free_seeds([run(1), run(1)]) == [2, 3, 4]
    assert free_seeds([run(3), run(1)]) == [2, 4, 5]


def test_seeds_that_are_no_numbers_are_refused(fedmpi):
    select = ("paper", "select", ".", "--seeds")
    refused(fedmpi(*select, "a,b"), "--seeds a,b: give whole numbers with commas, such as 1,2,3")
    refused(fedmpi(*select, "1,2,1"), "--seeds 1,2,1: each seed once")
