import csv
import dataclasses
import io

import pytest

from fedmpi.errors import BadInput
from fedmpi.reproduction.cells import as_csv, compare
from fedmpi.reproduction.published import Published
from fedmpi.reproduction.results import Results
from fedmpi.reproduction.tables import spread_text

SUITE = "gcfl/table3"
CHUNKS = {"options": "partition=chunks"}


def figure(row, metric, printed, method, spread=None, spread_of="client", unpublished=""):
    """Return a figure of a table's column PROTEINS (2); its ratios are of 2 clients."""
    cases = f"dataset=PROTEINS method={method}"
    place = ("P", "Table 3", "", row, "PROTEINS (2)", metric)
    return Published(*place, printed, spread, spread_of, 5, unpublished, SUITE, cases, "", "")


ALONE = figure("self-train", "average", "0.60", "self-train-50", 0.05)
FEDAVG = figure("FedAvg", "average", "0.70", "fedavg", 0.04)


@pytest.fixture
def results(make_rows):
    return Results(
        [
            *make_rows("self-train", {10: [0.5, 0.6], 42: [0.5, 0.6]}, rounds="50"),
            *make_rows("fedavg", {10: [0.7, 0.5], 42: [0.8, 0.6]}, best={10: [0.4, 0.4], 42: [0.4, 0.4]}),
        ]
    )


def test_averages_stand_beside_the_published_ones(results):
    alone, fedavg = compare([ALONE, FEDAVG], results)
    assert (alone.ours["last round"].mean, fedavg.ours["last round"].mean) == (0.55, 0.65)
    assert fedavg.ours["best by validation"].mean == 0.4
    assert len(fedavg.cell.missing) == 3


def test_a_method_keeps_its_own_spread_where_the_others_deviate_differently(results):
    alone, fedavg = compare([ALONE, FEDAVG], results)
    # Deviations 0 and 0.0707; two seeds of ours and five of theirs, t(0.975, 1) = 12.706.
    assert fedavg.alike["last round"] == 0.0
    assert fedavg.differences["last round"].signed == "-0.0500 ± 0.7517"
    assert alone.differences["last round"].signed == "-0.0500 ± 0.0000"
    text = spread_text([alone, fedavg], ["last round"])
    assert text == "Spreads (Bartlett's p). Last round: each method's own on PROTEINS (2) (0).\n"
    assert spread_text(compare([FEDAVG], results), ["last round"]) == ""


def test_spreads_that_are_alike_are_pooled(make_rows):
    rows = make_rows("self-train", {10: [0.5], 42: [0.6]}, rounds="50")
    alone, fedavg = compare([ALONE, FEDAVG], Results(rows + make_rows("fedavg", {10: [0.7], 42: [0.8]})))
    # Both deviate by 0.0707, with two degrees of freedom together: t(0.975, 2) = 4.303.
    assert fedavg.alike["last round"] == pytest.approx(1.0)
    assert fedavg.differences["last round"].signed == "+0.0500 ± 0.2545"
    assert alone.differences["last round"].signed == "-0.0500 ± 0.2545"
    text = spread_text([alone, fedavg], ["last round"])
    assert text.endswith("Last round: pooled on PROTEINS (2) (1).\n")


def test_a_printed_spread_of_the_average_stands_beside_ours(make_rows):
    rows = Results(make_rows("fedavg", {10: [0.7], 42: [0.8]}))
    (found,) = compare([figure("FedAvg", "average", "0.70", "fedavg", 0.1, "average")], rows)
    # Variances of the means 0.005 / 2 and 0.01 / 5: error root 0.0045, degrees of freedom
    # 0.0045^2 / (0.0025^2 / 1 + 0.002^2 / 4) = 2.793.
    assert found.differences["last round"].error == pytest.approx(0.0045**0.5)
    assert found.differences["last round"].freedom == pytest.approx(20.25 / 7.25)


def test_what_hangs_on_settings_that_are_not_published_is_not_refuted(make_rows):
    rows = Results(make_rows("fedavg", {10: [0.2], 42: [0.21], 79: [0.19]}))
    words = []
    for settings in ("", "dropout"):
        (found,) = compare([figure("FedAvg", "average", "0.70", "fedavg", unpublished=settings)], rows)
        words.append(found.judged["last round"].corrected)
    assert words == ["refuted", "not reached at these settings"]


def test_what_nothing_computes_says_what_it_lacks():
    missing = dataclasses.replace(FEDAVG, suite="", cases="", lacks="the data are not public")
    (found,) = compare([missing], Results([]))
    assert (str(found.judged["last round"]), found.cell.missing) == ("not run", ())
    (row,) = csv.DictReader(io.StringIO(as_csv([found])))
    assert (row["command"], row["note"]) == ("", "not run: lacks the data are not public")


def test_gains_are_over_the_self_train_of_the_column(results):
    least = figure("FedAvg", "min gain", "-0.1", "fedavg")
    ratio = figure("FedAvg", "ratio", "1/2", "fedavg")
    _, least, ratio = compare([ALONE, least, ratio], results)
    assert least.ours["last round"].mean == -0.05
    assert least.client["last round"] == "client-1"
    assert ratio.ours["last round"].mean == 0.5
    assert ratio.judged["last round"].corrected == "undecided at 2 seeds"


def test_gains_without_self_train_are_refused(results):
    with pytest.raises(BadInput, match=r"Table 3, PROTEINS \(2\): gains need a row self-train"):
        compare([figure("FedAvg", "ratio", "1/2", "fedavg")], results)


def test_the_table_has_a_row_per_figure(results):
    found = compare([ALONE, FEDAVG, figure("GCFL", "average", "0.75", "gcfl")], results)
    rows = list(csv.DictReader(io.StringIO(as_csv(found))))
    names = [
        *("paper", "table", "reading", "row", "column", "metric", "paper_mean", "paper_spread"),
        *("ours_mean", "ours_std", "ours_n", "selection", "as_published_mean"),
        *("verdict_last_round", "verdict_best_by_validation", "verdict_as_published", "command", "note"),
    ]
    assert list(rows[0]) == names
    assert list(rows[1].values()) == [
        "P", "Table 3", "", "FedAvg", "PROTEINS (2)", "average", "0.7000", "0.040", "0.6500", "0.0707", "2",
        "last round", "0.6500", *["undecided at 2 seeds"] * 3,
        "fedmpi sweep gcfl/table3 --set dataset=PROTEINS --set method=fedavg",
        "3 of 5 cases not run",
    ]  # fmt: skip
    assert {rows[2][name] for name in names[8:13]} == {""}
    assert (rows[2]["verdict_last_round"], rows[2]["note"]) == ("not run", "5 of 5 cases not run")
