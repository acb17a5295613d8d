"""Rows as CSV: what a spreadsheet would take for a formula stays text, and reading gives back what was written."""

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedmpi.algorithms.fedcch import FedCch, FedCchOptions
from fedmpi.analysis import costs, rows
from fedmpi.client.constant import constants
from fedmpi.config.locations import find
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.registry.check import check_suite
from fedmpi.store.reader import load_run
from tests.analysis.tasks import FIELDS, METRICS

ROOT = Path(__file__).parents[2]

WHOLE = {"rounds": 200, "split_seed": 123, "seed": 10, "run_wall_seconds": 60, "metric": "accuracy"}
WHOLE |= dict.fromkeys(rows.RULES.values(), 0.7)
SIZES = {"sizes": np.array([[3, 1, 1], [4, 1, 1]])}
SETTINGS = {"suite": "made-up", "name": "case", "partition": {"name": "chunks", "seed": 1}, "rounds": 1}
CASES = ["=1+1", "+1", "-1", "@x", "'=1", "'", "plain", "a=b", ""]


def written(path, made):
    path.write_text(rows.text(made))
    return path


def test_text_that_would_be_a_formula_is_marked_and_read_back(tmp_path):
    path = written(tmp_path / "rows.csv", ({"case": case, "test_loss": -0.5, **WHOLE} for case in CASES))
    with path.open(newline="") as stream:
        cells = [(row["case"], row["test_loss"]) for row in csv.DictReader(stream)]
    assert [case for case, _ in cells[:6]] == ["'=1+1", "'+1", "'-1", "'@x", "''=1", "''"]
    assert {loss for _, loss in cells} == {"-0.5"}
    assert [row["case"] for row in rows.read(path)] == CASES


@pytest.fixture
def stored(tmp_path):
    """Return a file of two whole rows, as lines without their ends."""
    made = ({**WHOLE, "case": case, "test_loss": 0.5, "config_digest": "ab"} for case in "xy")
    return written(tmp_path / "rows.csv", made)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: "", "its columns differ"),
        (lambda text: text[:-12], "line 3: not as many cells as columns"),
        (lambda text: text + "x" * 200_000, "cannot read these rows"),
        (lambda text: text.rstrip("\n") + ",more\n", "line 3: not as many cells as columns"),
        (lambda text: text.replace(",200,", ",two,", 1), "line 2: rounds = two"),
        (lambda text: text.replace(",200,", ",,", 1), "line 2: rounds = "),
        (lambda text: text.replace(",200,", f",{'9' * 5000},", 1), "line 2: rounds = 999"),
        (lambda text: text.replace(",0.5,", ",half,", 1), "line 2: test_loss = half"),
        (lambda text: text.replace(",0.5,", ",1e300,", 1), "line 2: test_loss = 1e300"),
        (lambda text: text.replace(",60,", ",,", 1), "line 2: run_wall_seconds = "),
        (lambda text: text.replace(",0.7,", ",,", 1), "line 2: score = "),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(stored, damage, reason):
    stored.write_text(damage(stored.read_text()))
    with pytest.raises(BadInput, match=reason) as refused:
        rows.read(stored)
    assert len(str(refused.value).replace(str(stored), "")) < 150


def test_a_further_metric_has_a_column_of_its_own(tmp_path):
    path = written(tmp_path / "rows.csv", [{**WHOLE, "spread": 0.25}, {**WHOLE, "case": "b"}])
    assert [row["spread"] for row in rows.read(path)] == ["0.25", ""]


def test_rows_say_how_well_clusters_follow_domains_where_the_record_does(tmp_path, make_judged):
    name = "clustering_accuracy"
    scored = {"clustering_accuracy": 0.75, "clustering_f1": 0.5}
    fields = [*FIELDS[name], FedCch(FedCchOptions(name="fedcch")).fields(2)[0]]
    found = []
    for place, indices in enumerate(([0.25, np.nan, 0.75], [np.nan])):
        rounds = [{**scored, "domain_agreement": index} for index in indices]
        folder = make_judged(tmp_path / str(place), METRICS[name], fields, rounds, SIZES, SETTINGS)
        found += rows.client_rows(load_run(folder))
    assert [row.get("domain_agreement") for row in found] == [0.5, 0.5, None, None]


def test_rows_are_added_and_blank_cells_filled_by_a_script(tmp_path):
    paths = known, new, other = [tmp_path / f"{name}.csv" for name in ("known", "new", "other")]
    tables = [
        [{"case": "a"}],
        [{"case": "b", "spread": -0.25}, {"case": "a", "spread": 0.5, "run_wall_seconds": 61}],
        [{"case": "b", "score": 0.8}],
    ]
    for path, table in zip(paths, tables, strict=True):
        written(path, ({**WHOLE, "config_digest": row["case"], **row} for row in table))
    script = [sys.executable, ROOT / "results" / "add_rows.py", known]
    subprocess.run([*script, new], check=True)
    found = [(row["case"], row["spread"], row["run_wall_seconds"]) for row in rows.read(known)]
    assert found == [("a", "0.5", "60"), ("b", "-0.25", "60")]
    before = known.read_bytes()
    refused = subprocess.run([*script, other], capture_output=True, text=True)
    words = "b, : score is 0.7 in the first file and 0.8 in the other\n"
    assert (refused.returncode, refused.stderr) == (1, words)
    assert known.read_bytes() == before


def test_rows_of_the_runs_of_every_scope(tmp_path, make_run, make_scored, make_judged):
    made = [
        make_run(tmp_path / "a", [[0.5, 0.75]], partition=SIZES, settings=SETTINGS),
        make_scored(tmp_path / "b", "rmse", [2.0, 1.5], constant=3.0, partition=SIZES, settings=SETTINGS),
    ]
    name = "clustering_accuracy"
    rounds = [{"clustering_accuracy": 0.75, "clustering_f1": 0.5}]
    made.append(make_judged(tmp_path / "c", METRICS[name], FIELDS[name], rounds, SIZES, SETTINGS))
    found = [row for folder in made for row in rows.client_rows(load_run(folder))]
    columns = ("client", "metric", "score", "score_as_published", "constant_score", "train_graphs")
    assert [tuple(row.get(name) for name in columns) for row in found] == [
        ("client-0", "accuracy", 0.5, 0.5, "", 3),
        ("client-1", "accuracy", 0.75, 0.75, "", 4),
        (rows.ALL, "rmse", 1.5, 1.5, 3.0, 7),
        ("a", "clustering_accuracy", 0.75, None, "", 3),
        ("b", "clustering_accuracy", 0.75, None, "", 4),
    ]
    assert found[2]["test_mae"] == 0.75 and found[3]["clustering_f1"] == 0.5


def test_rows_say_on_how_many_ranks_and_with_how_much_energy(tmp_path, make_run, monkeypatch):
    about = {"partition": SIZES, "settings": SETTINGS}
    folders = [make_run(tmp_path / str(ranks), [[0.5, 0.75]], ranks=ranks, **about) for ranks in (1, 3)]
    first, other = map(load_run, folders)
    assert [row["run_ranks"] for row in rows.client_rows(first)] == [1, 1]
    monkeypatch.setattr(costs, "energy", lambda run: {"joules": 12.3456 if run is first else np.nan})
    joules = [row.get("run_joules") for run in (first, other) for row in rows.client_rows(run)]
    assert joules == [12.3456, 12.3456, None, None]
    (attempt,) = other.attempts
    changed = replace(other, attempts=[attempt, replace(attempt, ranks=2)])
    assert {row["run_ranks"] for row in rows.client_rows(changed)} == {""}


def test_constants_of_runs_that_did_not_record_them_are_filled_in_by_a_script(tmp_path):
    path = tmp_path / "rows.csv"
    first, *_ = check_suite(read(find("synthetic/quick")))
    known = constants(first.case, DataSource.from_environment())
    clients = list(known.by_client["accuracy"])
    own = {**WHOLE, "suite": "synthetic/quick", "config_digest": first.case.digest()}
    made = [{**own, "client": client} for client in clients]
    made.append({**made[0], "config_digest": "0" * 64})
    written(path, made)
    command = [sys.executable, ROOT / "results" / "add_constants.py", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f": {len(clients)} of {len(made)} blank cells filled\n")
    found = [row["constant_score"] for row in rows.read(path)]
    assert found == [*(str(each) for each in known.by_client["accuracy"].values()), ""]
    assert known.means()["accuracy"] == pytest.approx(np.mean([float(each) for each in found[:-1]]))
    assert (known.of("other", clients[0]), known.of("accuracy", "nobody")) == (None, None)
