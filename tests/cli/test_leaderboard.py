"""``fedmpi leaderboard``: tuned, run, recomputed with the same bits, and shown by one command each."""

from __future__ import annotations

import shutil

import pytest

from fedmpi.analysis import scores
from fedmpi.analysis.leaderboard import row_files as files
from fedmpi.metrics.metric import ACCURACY
from fedmpi.store.reader import load_run
from tests.cli.refusals import refused

SUITE = """
name = "demo/graphs"
[case]
dataset = { name = "synthetic", synthetic = { domains = 2, graphs = 20, nodes = [8, 9] } }
model = { hidden = 16, layers = 1 }
rounds = 1
devices = "equal"
seed = 0
[matrix]
data = [{ label = "one", partition = { name = "per-dataset", seed = 0 } }]
algorithm = [{ label = "fedavg", algorithm = "fedavg" }]
"optimizer.lr" = [0.01, 0.02]
"""


@pytest.mark.long
def test_a_track_is_tuned_run_and_computed_again(fedmpi, tmp_path):
    (tmp_path / "demo.toml").write_text(SUITE)
    refused(fedmpi("leaderboard", "page"), "results/reference/leaderboard/graphs.csv")
    done = fedmpi("leaderboard", "run", "demo.toml", code=0)
    path = tmp_path / "results/reference/leaderboard/demo-graphs.csv"
    rows = files.read(path)
    assert [row.stage for row in rows] == ["tuning"] * 2 + ["final"] * 10
    best = max(rows[:2], key=lambda row: row.val)
    assert {row.settings for row in rows[2:]} == {best.settings}
    assert [row.seed for row in rows[2:]] == list(range(1, 11))
    assert all(row.target == row.val for row in rows[2:])  # FedAvg's with the same seed
    assert rows[0].target == pytest.approx((rows[0].val + rows[1].val) / 2)
    assert len({row.results_digest for row in rows}) == 12
    found = files.read_constants(files.constants_beside(path))
    assert [each.seed for each in found] == list(range(1, 11))
    runs = tmp_path / "results/runs/demo/graphs-tuned"
    first = scores.constant(load_run(next(runs.glob("*seed1"))), ACCURACY)
    assert 0 < first == found[0].constant < 1
    for row in rows[2:]:  # a run has one round, and two clients
        record = load_run(runs / row.case)
        assert row.worst_decile == record.results["test_accuracy"][0].min()
        reached = row.val >= row.target
        spent = (row.gflop_to_target, row.bytes_to_target, row.virtual_seconds_to_target)
        clock = float(record.results["virtual_clock"][0])
        assert (spent == (row.model_gflop, row.bytes_per_client, clock)) == reached

    before = path.read_text()
    files.constants_beside(path).unlink()
    fedmpi("leaderboard", "constants", "demo.toml", code=0)
    assert files.read_constants(files.constants_beside(path)) == found
    shutil.rmtree(runs.parent)  # rows alone count
    again = fedmpi("leaderboard", "run", "demo.toml", code=0)
    assert path.read_text() == before and not runs.exists()
    assert "2 cases of 2 have rows in" in again.stdout and "10 cases of 10 have rows in" in again.stdout
    same = fedmpi("leaderboard", "check", "demo.toml", "--every", "12", "--first", "5")
    assert (same.returncode, "1 case computed again: the same bits" in same.stdout) == (0, True)
    assert "1 constant prediction computed again: the same" in same.stdout
    place = files.constants_beside(path)
    place.write_text(place.read_text().replace(str(found[3].constant), "0.125"))
    other = fedmpi("leaderboard", "check", "demo.toml", "--every", "12", "--first", "5", code=1)
    assert "DIFFERS: constant prediction on one, seed 4: stored is 0.125" in other.stdout
    refused(fedmpi("leaderboard", "page", str(path)), "rows of demo-graphs, which --track does not name")
    assert "fedmpi leaderboard page --track demo.toml --document demo-graphs.md shows them" in done.stdout
    fedmpi("leaderboard", "page", "--track", "demo.toml", "--document", "page.md", code=0)
    shown = (tmp_path / "page.md").read_text()
    assert "optimizer" not in shown and "### Scores: demo-graphs" in shown
    assert "- **Demo graphs.** Its only federation is finished." in shown
    costs = ("time", "FLOP", "bytes", "virtual time")
    assert all(f"{what} to target, times FedAvg's |" in shown for what in costs)
    worst = sum(row.worst_decile for row in rows[2:]) / 10
    assert f"| {100 * worst:.2f} |" in shown
    assert (tmp_path / "images/leaderboard-demo-graphs-budget.svg").exists()
    refused(fedmpi("leaderboard", "run", "demo.toml", "--set", "optimizer.lr=0.01"), "it chooses federations")
    done = fedmpi("leaderboard", "run", "demo.toml", "--set", "algorithm=half")
    refused(done, "no such method (valid: fedavg)")


def test_what_is_no_track_is_refused(fedmpi, tmp_path):
    refused(fedmpi("leaderboard", "run", "graph"), "graph: no such suite")
    refused(fedmpi("leaderboard", "check", "graphs"), "leaderboard/graphs.csv: cannot read these rows")
    refused(fedmpi("leaderboard", "run", "synthetic/quick"), "needs the axes data and algorithm")


def test_what_could_not_be_stored_is_refused_before_the_tuning(fedmpi, tmp_path):
    (tmp_path / "demo.toml").write_text(SUITE)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows.csv").write_text("a,b\n")
    for place, words in {
        "rows": "--rows rows: a folder, where a file",
        "rows.csv": "its columns differ",
        "rows.csv/x.csv": "cannot write it",
    }.items():
        refused(fedmpi("leaderboard", "run", "demo.toml", "--rows", place), words)
    for name in ("leaderboard/graphs", "graphs"):
        (tmp_path / "graphs.toml").write_text(SUITE.replace("demo/graphs", name))
        words = f"its name is {name}, fedmpi's own track; choose"
        refused(fedmpi("leaderboard", "run", "graphs.toml"), words)
    assert not (tmp_path / "results").exists()


SCREENING = """
name = "demo/screening"
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 90, nodes = [8, 9] } }
model = { hidden = 16, layers = 1 }
share = "all"
rounds = 1
[matrix]
data = [{ label = "one", partition = { name = "iid", clients = 3 } }]
how = [{ label = "a", batch_size = 16 }, { label = "b", batch_size = 32 }]
algorithm = ["self-train", "fedavg", "centralised"]
seed = [101, 102]
"""


def test_a_screening_runs_what_is_missing_and_says_what_federations_lack(fedmpi, tmp_path):
    (tmp_path / "demo.toml").write_text(SCREENING)
    path = tmp_path / "results/reference/leaderboard/screening/demo-screening.csv"
    first = fedmpi("leaderboard", "screen", "demo.toml", "--set", "how=a", code=0)
    assert "one-a" in first.stdout and "few test examples" in first.stdout and "one-b" not in first.stdout
    fedmpi("leaderboard", "screen", "demo.toml", code=0)
    rows = files.read_trials(path)
    assert [(row.data, row.method, row.seed) for row in rows[:3]] == [
        ("one-a", "centralised", 101),
        ("one-a", "centralised", 102),
        ("one-a", "fedavg", 101),
    ]
    assert len(rows) == 12 and {row.examples for row in rows} == {9}
    again = path.read_text()
    shutil.rmtree(tmp_path / "results/runs")  # rows alone count
    fedmpi("leaderboard", "screen", "demo.toml", code=0)
    assert path.read_text() == again and not (tmp_path / "results/runs").exists()


def test_a_screening_has_reference_methods_alone(fedmpi, tmp_path):
    (tmp_path / "demo.toml").write_text(SCREENING.replace('"centralised"]', '"ditto"]'))
    done = fedmpi("leaderboard", "screen", "demo.toml")
    refused(done, "a screening has self-train, fedavg, centralised, not ditto")


def test_a_screening_keeps_what_is_not_its_own_apart(fedmpi, tmp_path):
    """Rows of another suite stay, those of earlier settings go, and --set chooses alone."""
    (tmp_path / "demo.toml").write_text(SCREENING)
    (tmp_path / "other.toml").write_text(SCREENING.replace('"one"', '"two"'))
    few = ("--set", "how=a", "--set", "algorithm=fedavg", "--rows", "rows.csv")
    fedmpi("leaderboard", "screen", "demo.toml", *few, code=0)
    before = (tmp_path / "rows.csv").read_text()
    done = fedmpi("leaderboard", "screen", "other.toml", *few)
    refused(done, "rows.csv: rows of one-a, not of other.toml; choose another --rows")
    done = fedmpi("leaderboard", "screen", "demo.toml", *few, "--set", "rounds=2")
    refused(done, "--set: it chooses among the cases of demo.toml, nothing else")
    assert (tmp_path / "rows.csv").read_text() == before
    (tmp_path / "demo.toml").write_text(SCREENING.replace("rounds = 1", "rounds = 2"))
    fedmpi("leaderboard", "screen", "demo.toml", *few, "--out", "longer", code=0)
    rows = files.read_trials(tmp_path / "rows.csv")
    assert [row.seed for row in rows] == [101, 102] and (tmp_path / "rows.csv").read_text() != before
    axis = '"optimizer.lr" = [0.1, 0.2]\nseed = [101, 102]'
    (tmp_path / "demo.toml").write_text(SCREENING.replace("seed = [101, 102]", axis))
    refused(fedmpi("leaderboard", "screen", "demo.toml"), "one-a self-train: two cases of one seed")
