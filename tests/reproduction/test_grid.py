from fedmpi.reproduction.cells import compare
from fedmpi.reproduction.results import Results
from fedmpi.reproduction.tables import at_constant, grids, legend
from tests.reproduction.test_cells import ALONE, FEDAVG, figure

RULES = ("last round", "best by validation")


def test_a_cell_has_the_papers_figure_and_ours_under_each_rule(make_rows):
    rows = [
        *make_rows("self-train", {10: [0.5, 0.6], 42: [0.5, 0.6]}, rounds="50"),
        *make_rows("fedavg", {10: [0.7, 0.5]}, best={10: [0.4, 0.4]}),
    ]
    least = figure("FedAvg", "min gain", "-0.1", "fedavg")
    ((metric, text),) = grids(compare([ALONE, FEDAVG, least], Results(rows)), RULES)
    assert metric == "average"
    assert text.splitlines()[2:] == [
        "| self-train | 0.600 → 0.550 / 0.550 |",
        "| FedAvg | 0.700 → 0.600 / 0.400 |",
        "| *runs* | *1 to 2* |",
    ]


def test_a_mark_says_what_is_surely_so(make_rows):
    near, far = {10: [0.7], 42: [0.701], 79: [0.699]}, {10: [0.2], 42: [0.21], 79: [0.19]}
    found = compare([FEDAVG], Results(make_rows("fedavg", near, best=far)))
    assert "| 0.700 → 0.700 ✓ / 0.200 ✗ |" in grids(found, RULES)[0][1]
    assert "✗: refuted" in legend(found, RULES)
    wide = compare([FEDAVG], Results(make_rows("fedavg", {10: [0.5], 42: [0.9], 79: [0.7]})))
    assert "| 0.700 → 0.700 / 0.700 |" in grids(wide, RULES)[0][1]


def test_what_was_not_run_has_no_figure():
    assert "| FedAvg | 0.700 → - |" in grids(compare([FEDAVG], Results([])), RULES)[0][1]


def test_a_line_says_what_takes_no_training(make_rows):
    known = make_rows("fedavg", {10: [0.7, 0.5], 42: [0.7, 0.5]})
    for row, floor in zip(known, ("0.25", "0.5", "0.25", "0.5"), strict=True):
        row["constant_score"] = floor
    rows = [*make_rows("self-train", {10: [0.5, 0.6]}, rounds="50"), *known]
    text = grids(compare([ALONE, FEDAVG], Results(rows)), RULES)[0][1]
    assert text.splitlines()[-2] == "| *constant prediction* | 0.375 |"
    assert "each client's most frequent class" in legend(compare([FEDAVG], Results(known)), RULES)
    assert "Constant" not in legend(compare([ALONE], Results(rows)), RULES)
    known[1]["constant_score"] = ""
    found = compare([ALONE, FEDAVG], Results(rows))
    assert at_constant(found).splitlines()[2:] == ["| self-train | - |", "| FedAvg | 1 of 3 |"]
    assert at_constant(compare([ALONE], Results(rows))) == ""
