"""Rows of runs, and the document made of committed rows."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from fedmpi.analysis import rows
from fedmpi.cli.paper import reproduction
from fedmpi.errors import BadInput
from fedmpi.reproduction.published import PAPERS
from tests.started import sets

ROOT = Path(__file__).parents[2]
FEW = ROOT / "results" / "reference" / "fclg-winners.csv"


def test_rows_of_a_run(fedmpi, tiny_suite, tmp_path):
    settings = ("algorithm=fedavg", "batch_size=32", "partition.seed=7")
    fedmpi("run", tiny_suite, *sets(*settings))
    fedmpi("report", "results", "--csv", "rows.csv", code=0)
    found = rows.read(tmp_path / "rows.csv")
    assert [row["client"] for row in found] == ["synthetic-0", "synthetic-1", "synthetic-2"]
    first = found[0]
    expected = {
        "suite": "tiny",
        "case": "fedavg-batch_size=32-partition.seed=7",
        "algorithm": "fedavg",
        "rounds": "4",
        "split_seed": "7",
        "options": "batch_size=32 dataset.synthetic.domains=3 dataset.synthetic.graphs=40",
    }
    assert {name: first[name] for name in expected} == expected
    assert int(first["parameters"]) > int(first["shared_parameters"]) == 24_960
    assert float(first["run_wall_seconds"]) >= float(first["train_wall_seconds"]) > 0
    assert float(first["run_executed_gflop"]) > 0
    assert float(first["model_gflop"]) > 0


@pytest.mark.long
def test_the_committed_table_and_document_are_made_of_the_committed_rows(tmp_path):
    reference, docs = ROOT / "results" / "reference", ROOT / "docs"
    assert reproduction([reference], tmp_path / "cells.csv", tmp_path / "reproduction.md") == 0
    assert (tmp_path / "cells.csv").read_text() == (reference / "cells.csv").read_text()
    assert (tmp_path / "reproduction.md").read_text() == (docs / "reproduction.md").read_text()
    folders = (folder / "reproduction" for folder in (tmp_path, docs))
    made, committed = ({path.name: path.read_text() for path in each.iterdir()} for each in folders)
    assert sorted(made) == sorted(committed) and made == committed


def test_the_first_page_says_what_became_of_each_paper_on_one_screen():
    page = (ROOT / "docs" / "reproduction.md").read_text()
    first = page.partition("## The same in numbers")[0]
    assert len(first.splitlines()) < 45
    assert "(reproduction/verdicts.svg)" in first
    for paper in PAPERS:
        assert f"(reproduction/{paper.name.lower()}.md)" in first
    cells = list(csv.DictReader((ROOT / "results" / "reference" / "cells.csv").open()))
    averages = [row for row in cells if (row["paper"], row["metric"]) == ("GCFL", "average")]
    verdicts = Counter(row["verdict_last_round"].split(" at ")[0] for row in averages)
    assert (
        f"| [GCFL](reproduction/gcfl.md) | {len(averages)} average accuracies | last round "
        f"| {verdicts['confirmed']} | {verdicts['refuted']} | {verdicts['undecided']} | 0 |\n" in page
    )


def test_the_committed_rows_are_small():
    places = {path: path.stat().st_size for path in (ROOT / "results/reference").rglob("*") if path.is_file()}
    leaderboard = sum(size for path, size in places.items() if "leaderboard" in path.parts)
    assert sum(places.values()) - leaderboard < 26e6
    assert leaderboard < 22e6  # 40,000 rows: 24 candidates for every method and federation, on 2 seeds each


def test_a_place_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("fedmpi.cli.paper.all_cells", lambda results: [])
    monkeypatch.setattr("fedmpi.cli.paper.pages", lambda *given: {})
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"file/cells\.csv: cannot write it"):
        reproduction([FEW], tmp_path / "file/cells.csv", tmp_path / "page.md")


def test_what_has_no_rows_is_refused_and_nothing_written(tmp_path):
    places = tmp_path / "cells.csv", tmp_path / "page.md"
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=r"empty: no rows; make some with fedmpi report --csv"):
        reproduction([tmp_path / "empty"], *places)
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match="columns differ"):
        reproduction([path], *places)
    path.write_text(rows.text([]))
    with pytest.raises(BadInput, match=r"rows\.csv: no rows; make some with fedmpi report --csv"):
        reproduction([path], *places)
    assert not any(place.exists() for place in places)
