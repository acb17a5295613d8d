"""Runs of unsupervised objectives in tables, CSV and JSON: the score of their clusters in the last round."""

import json

from fedmpi.analysis.rows import client_rows, read, text
from fedmpi.analysis.summary import summarise
from fedmpi.store.reader import load_run

SUITE = """
name = "tests/unsupervised"
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 60 } }
partition = { name = "dominant-share", clients = 4 }
model = { name = "gin-encoder", hidden = 8, layers = 2 }
evaluation = { probe = true }
share = "all"
rounds = 3
[matrix]
seed = [{ label = "a", seed = 1, partition = { seed = 1 } }, { label = "b", seed = 2, partition = { seed = 2 } }]
method = [
    { label = "infograph", objective = "infograph", optimizer = "adam" },
    { label = "intra", objective = "intra", optimizer = "adamw", batch_size = 16 },
    { label = "fclg", objective = "fclg", optimizer = "adamw", algorithm = "fedprox" },
]
"""


def test_a_run_is_shown_by_its_clusters_in_the_last_round_and_methods_beside_each_other(fedmpi, tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    done = fedmpi("run", tmp_path / "suite.toml", "--out", "runs")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "runs" / "a-infograph"
    run = load_run(folder)
    last, f1 = (float(run.results[f"clustering_{name}"][-1]) for name in ("accuracy", "f1"))
    assert summarise(run)["clustering_accuracy"] == last
    assert f"clustering accuracy {last:.4f}" in done.stdout
    assert f"{100 * last:.2f}" in fedmpi("report", folder).stdout
    assert "test acc" not in done.stdout
    assert json.loads(fedmpi("report", folder, "--json").stdout)[0]["clustering_f1"] == f1
    (tmp_path / "rows.csv").write_text(text(client_rows(run)))
    found = read(tmp_path / "rows.csv")
    assert len(found) == 4
    assert {(row["metric"], float(row["score"])) for row in found} == {("clustering_accuracy", last)}
    shown = fedmpi("report", folder, "--markdown").stdout
    assert f"| {100 * last:.2f} |" in shown and f"| {100 * f1:.2f} |" in shown
    assert "test accuracy" not in shown and "nan" not in shown  # no empty columns
    assert fedmpi("report", folder, "--html", "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert "clustering accuracy %" in page and "Clustering accuracy" in page
    assert "The same prediction for every example would score" in page
    assert "Validation accuracy" not in page and "Test accuracy in numbers" not in page  # no empty curves
    assert f"has a clustering accuracy of {100 * last:.2f} %" in page
    assert "nan %" not in page

    lines = fedmpi("report", "runs", "--markdown").stdout.splitlines()
    rows = [[part.strip() for part in line.split("|")[1:3]] for line in lines if line.startswith("| syn")]
    assert rows == [["synthetic", name] for name in ("InfoGraph-FedAvg", "FCLG-FedProx", "Intra-FedAvg")]
    assert "probe accuracy %" in lines[0] and "constant" in lines[0]
    compared = fedmpi("compare", "runs/a-infograph", "runs/a-intra", "--tolerance", "1").stdout
    assert "InfoGraph-FedAvg -> Intra-FedAvg" in compared and "\nVALID: 1 pair" in compared
    assert "Not like for like" not in compared and "model GFLOP" in compared
    assert "objective: infograph -> intra" in compared and "clustering accuracy" in compared
    table = fedmpi("report", "runs", "--by", "case").stdout
    assert "objective" in table and "infograph" in table and "probe" in table
    done = fedmpi("report", "runs", "--html", "page.html")
    assert "Warning" not in done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "tie for the best clustering accuracy in the last round" in page
    assert "Best by client" not in page and "Which algorithm won" not in page
