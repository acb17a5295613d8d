"""Runs of unsupervised objectives in tables, CSV and JSON: the score of their clusters in the last round."""

import json

import pytest

from fedmpi.analysis.rows import client_rows, read, write
from fedmpi.analysis.summary import summarise
from fedmpi.store.reader import load_run

SUITE = """
name = "tests/unsupervised"
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 60 } }
partition = { name = "dominant-share", clients = 4 }
model = { name = "gin-encoder", hidden = 8, layers = 2 }
objective = "infograph"
share = "all"
rounds = 3
"""


@pytest.fixture
def run(fedmpi, tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    done = fedmpi("run", tmp_path / "suite.toml", "--out", "runs")
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    return load_run(folder), done.stdout


def test_the_headline_is_the_last_rounds_clustering_accuracy(run, fedmpi):
    record, printed = run
    last = float(record.results["clustering_accuracy"][-1])
    assert summarise(record)["clustering_accuracy"] == last
    assert f"clustering accuracy {last:.4f}" in printed and f"{100 * last:.2f}" in printed
    assert "test acc" not in printed
    shown = json.loads(fedmpi("report", record.folder, "--json").stdout)
    assert shown[0]["clustering_f1"] == float(record.results["clustering_f1"][-1])


def test_rows_have_the_scores_of_the_whole_run(run, tmp_path):
    rows = client_rows(run[0])
    with (tmp_path / "rows.csv").open("w") as stream:
        write(rows, stream)
    found = read(tmp_path / "rows.csv")
    assert len(found) == 4
    last = run[0].results["clustering_accuracy"][-1]
    assert {(row["metric"], float(row["score"])) for row in found} == {("clustering_accuracy", last)}


def test_two_runs_compare_by_their_clusters(run, fedmpi):
    shown = fedmpi("compare", run[0].folder, run[0].folder).stdout
    assert "clustering accuracy" in shown


def test_the_page_has_the_clusters_and_no_empty_curves(run, fedmpi, tmp_path):
    assert fedmpi("report", run[0].folder, "--html", "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert "clustering accuracy %" in page and "Clustering accuracy" in page
    assert "The same prediction for every example would score" in page
    assert "Validation accuracy" not in page and "Test accuracy in numbers" not in page
    assert f"has a clustering accuracy of {100 * run[0].results['clustering_accuracy'][-1]:.2f} %" in page
    assert "nan %" not in page


def test_markdown_has_the_clusters_and_no_empty_columns(run, fedmpi):
    shown = fedmpi("report", run[0].folder, "--markdown").stdout
    accuracy, f1 = (100 * run[0].results[f"clustering_{name}"][-1] for name in ("accuracy", "f1"))
    assert f"| {accuracy:.2f} |" in shown and f"| {f1:.2f} |" in shown
    assert "test accuracy" not in shown and "nan" not in shown


METHODS = """
[matrix]
seed = [{ label = "a", seed = 1, partition = { seed = 1 } }, { label = "b", seed = 2, partition = { seed = 2 } }]
method = [
    { label = "infograph", objective = "infograph", optimizer = "adam" },
    { label = "intra", objective = "intra", optimizer = "adamw", batch_size = 16 },
    { label = "fclg", objective = "fclg", optimizer = "adamw", algorithm = "fedprox" },
]
"""


def test_methods_of_one_dataset_stand_beside_each_other_over_their_repetitions(fedmpi, tmp_path):
    suite = SUITE.replace('objective = "infograph"\n', "evaluation = { probe = true }\n") + METHODS
    (tmp_path / "suite.toml").write_text(suite)
    assert fedmpi("run", tmp_path / "suite.toml", "--out", "runs").returncode == 0
    lines = fedmpi("report", "runs", "--markdown").stdout.splitlines()
    rows = [[part.strip() for part in line.split("|")[1:3]] for line in lines if line.startswith("| syn")]
    methods = ["InfoGraph-FedAvg", "FCLG-FedProx", "Intra-FedAvg"]
    assert rows == [["synthetic", method] for method in methods]
    assert "probe accuracy %" in lines[0] and "constant" in lines[0]
    compared = fedmpi("compare", "runs/a-infograph", "runs/a-intra", "--tolerance", "1")
    assert "InfoGraph-FedAvg -> Intra-FedAvg" in compared.stdout and "\nVALID: 1 pair" in compared.stdout
    assert "Not like for like" not in compared.stdout and "model GFLOP" in compared.stdout
    assert "objective: infograph -> intra" in compared.stdout
    table = fedmpi("report", "runs", "--by", "case").stdout
    assert "objective" in table and "infograph" in table and "probe" in table
    done = fedmpi("report", "runs", "--html", "page.html")
    assert "Warning" not in done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "tie for the best clustering accuracy in the last round" in page
    assert "Best by client" not in page and "Which algorithm won" not in page
