import csv

import numpy as np
import pytest

from fedmpi.analysis import published, rows
from fedmpi.errors import BadInput


def test_the_interval_is_students():
    # t(0.975, 4) = 2.776
    assert str(published.interval(0.75, 0.02, 5)) == "0.7500 ± 0.0248"
    assert str(published.interval(0.75, 0.02, 1)) == "0.7500"


def test_intervals_overlap_when_they_share_a_point():
    assert published.Interval(0.70, 0.02).overlaps(published.Interval(0.72, 0.01))
    assert not published.Interval(0.70, 0.02).overlaps(published.Interval(0.74, 0.01))


def test_gains_count_ties_as_improved():
    ours, alone = np.array([[0.8, 0.5, 0.6]]), np.array([[0.7, 0.5, 0.7]])
    least, count = published.gains(ours, alone)
    assert (round(least, 10), count) == (-0.1, 2)


def test_known_seeds_give_the_published_interval():
    cell = published.Published("re-run", 3, 0.7297, None, (0.7228, 0.7513, 0.7151), "", "")
    assert str(published.published_interval(cell, np.zeros((0, 2)))) == "0.7297 ± 0.0474"


def test_a_printed_spread_is_scaled_as_ours_is():
    # Two clients, one of which varies: the average deviates as much as the mean of the deviations.
    ours = np.array([[0.5, 0.5], [0.6, 0.5]])
    cell = published.Published("paper", 5, 0.7, 0.04, (), "", "")
    assert str(published.published_interval(cell, ours)) == str(published.interval(0.7, 0.04, 5))


@pytest.fixture
def own_rows():
    def row(seed, client, accuracy, algorithm="fedavg", rounds="200"):
        values = {
            "dataset": "PROTEINS",
            "algorithm": algorithm,
            "seed": seed,
            "rounds": rounds,
            "client": client,
        }
        return {**dict.fromkeys(rows.COLUMNS, "0"), **values, "test_accuracy": accuracy}

    return [
        row("1", "a", "0.8"), row("1", "b", "0.7"), row("2", "a", "0.7"), row("2", "b", "0.7"),
        row("1", "a", "0.7", "self-train", "50"), row("1", "b", "0.75", "self-train", "50"),
    ]  # fmt: skip


def test_rows_survive_the_file(tmp_path, own_rows):
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as stream:
        rows.write(own_rows, stream)
    assert rows.read(path) == own_rows


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match="columns differ"):
        rows.read(path)


def test_the_table_sets_ours_beside_theirs(tmp_path, own_rows):
    path = tmp_path / "published.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(published._PUBLISHED)
        writer.writerow(["PROTEINS", "fedavg", 200, "re-run", 3, 0.73, "", "0.72 0.73 0.74", "", ""])
        writer.writerow(["PROTEINS", "self-train", 50, "paper", 5, 0.72, 0.05, "", "", ""])
    text = published.table(own_rows, published.read(path))
    line = next(line for line in text.splitlines() if "fedavg" in line)
    assert "| 0.7250 ± 0.3177 |" in line
    assert "-0.0500, 1/2" in line
    assert line.endswith("| overlap |")


def test_seeds_with_missing_clients_are_refused(own_rows):
    with pytest.raises(BadInput, match="same number of clients"):
        published.accuracies(own_rows[1:], "test_accuracy")
