import csv
from pathlib import Path

from fedmpi.reproduction.cells import compare
from fedmpi.reproduction.published import PAPERS
from fedmpi.reproduction.results import Results
from fedmpi.reproduction.scores import changes_table

REFERENCE = Path(__file__).parents[2] / "results/reference"
SUITE = "fedgraphnn/freesolv"


def stored(name):
    with (REFERENCE / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def table_of(rows):
    paper = next(paper for paper in PAPERS if paper.ablation == SUITE)
    results = Results(rows)
    text = changes_table(results, SUITE, compare(paper.figures, results))
    lines = [[part.strip() for part in line.strip("|").split(" | ")] for line in text.splitlines()]
    return {line[0]: dict(zip(lines[0][1:], line[1:], strict=True)) for line in lines}


def means(rows, ending, *columns):
    chosen = [row for row in rows if row["case"].endswith(ending) and row["seed"] in "12"]
    assert [row["seed"] for row in chosen] == ["1", "2"]
    return [f"{sum(float(row[column]) for row in chosen) / 2:.2f}" for column in columns]


def test_a_change_and_the_tables_settings_are_means_over_the_same_seeds_whatever_file_comes_first():
    changed, published = stored("fedgraphnn-freesolv"), stored("fedgraphnn-table20")
    rules = ("score_as_published", "score_best_by_validation")
    best, chosen = means(changed, "gat-fedavg-rounds-150", *rules)
    found = table_of(changed + published)
    assert found == table_of(published + changed)
    assert found["seeds, of both sides"]["GAT (FedAvg)"] == "1, 2"
    assert found["rounds-150"]["GAT (FedAvg)"] == f"{best} ({chosen})"
    assert found["published"]["GAT (FedAvg)"] == "1.3130"
    (best,) = means(
        [row for row in published if row["case"].startswith("FreeSolv")], "gcn-centralised", rules[0]
    )
    # Over all three seeds of the table it would be 2.47.
    assert found["the table's settings"]["GCN (centralised)"].split()[0] == best == "2.53"


def test_without_such_runs_there_is_no_table():
    assert table_of([row for row in stored("fedgraphnn-table20") if row["dataset"] != "FreeSolv"]) == {}
