"""``fedmpi select``: winners by validation, run again with other seeds by one command."""

from __future__ import annotations

from fedmpi.store.reader import load_run
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
    done = fedmpi("select", "demo/sweep", "--seeds", "5", "--rerun", "--data", data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "optimizer.lr=" in done.stdout
    (folder,) = (tmp_path / "results" / "runs" / "demo" / "sweep-winners").iterdir()
    again = load_run(folder)
    assert (again.config["seed"], again.status) == (5, "complete")
    assert again.config["optimizer"]["lr"] in (0.01, 0.0001)


def test_seeds_that_are_no_numbers_are_refused(fedmpi, tmp_path):
    done = fedmpi("select", tmp_path, "--seeds", "a,b")
    assert (done.returncode, done.stderr) == (
        2,
        "fedmpi: --seeds a,b: give whole numbers with commas, such as 1,2,3\n",
    )
