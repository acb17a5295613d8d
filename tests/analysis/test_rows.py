"""Rows as CSV: what a spreadsheet would take for a formula stays text, and reading gives back what was written."""

import csv

import pytest

from fedmpi.analysis import rows
from fedmpi.errors import BadInput

WHOLE = {
    **{"rounds": 200, "split_seed": 123, "seed": 10, "run_wall_seconds": 60},
    **dict.fromkeys(rows.RULES.values(), 0.7),
}
CASES = ["=1+1", "+1", "-1", "@x", "'=1", "'", "plain", "a=b", ""]


def test_text_that_would_be_a_formula_is_marked_and_read_back(tmp_path):
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as stream:
        rows.write(({"case": case, "test_loss": -0.5, **WHOLE} for case in CASES), stream)
    with path.open(newline="") as stream:
        cells = [(row["case"], row["test_loss"]) for row in csv.DictReader(stream)]
    assert [case for case, _ in cells[:6]] == ["'=1+1", "'+1", "'-1", "'@x", "''=1", "''"]
    assert {loss for _, loss in cells} == {"-0.5"}
    assert [row["case"] for row in rows.read(path)] == CASES


@pytest.fixture
def stored(tmp_path):
    """Return a file of two whole rows, as lines without their ends."""
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as stream:
        rows.write(
            ({**WHOLE, "case": case, "test_loss": 0.5, "config_digest": "ab"} for case in "xy"), stream
        )
    return path


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
        (lambda text: text.replace(",0.7,", ",,", 1), "line 2: test_accuracy = "),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(stored, damage, reason):
    stored.write_text(damage(stored.read_text()))
    with pytest.raises(BadInput, match=reason) as refused:
        rows.read(stored)
    assert len(str(refused.value).replace(str(stored), "")) < 150
