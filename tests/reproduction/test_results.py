import pytest

from fedmpi.errors import BadInput
from fedmpi.reproduction.results import Key, Repetition, Results

FEDAVG = Key("PROTEINS", "fedavg", 200, "partition=chunks")


def test_repetitions_make_a_cell(make_rows):
    rows = make_rows("fedavg", {42: [0.7, 0.8], 10: [0.5, 0.6]})
    cell = Results(rows).cell(FEDAVG)
    assert list(cell.runs) == [Repetition(123, 10), Repetition(123, 42)]
    assert cell.values("score").tolist() == [[0.5, 0.6], [0.7, 0.8]]


def test_other_options_and_rounds_are_other_cells(make_rows):
    accuracies = {10: [0.5]}
    rows = [
        *make_rows("fedavg", accuracies),
        *make_rows("fedavg", accuracies, options="partition=chunks share=all"),
        *make_rows("fedavg", accuracies, rounds="50"),
        *make_rows("fedavg", accuracies, split_seed="1"),
    ]
    results = Results(rows)
    assert list(results.cell(FEDAVG).runs) == [Repetition(1, 10), Repetition(123, 10)]
    for other in (FEDAVG._replace(rounds=50), FEDAVG._replace(options="partition=chunks share=all")):
        assert list(results.cell(other).runs) == [Repetition(123, 10)]


def test_the_same_case_of_two_suites_counts_once(make_rows):
    rows = make_rows("fedavg", {10: [0.5]}) + make_rows("fedavg", {10: [0.5]}, suite="other")
    assert Results(rows).cell(FEDAVG).values("score").tolist() == [[0.5]]


def test_the_same_case_with_other_results_is_refused(make_rows):
    rows = make_rows("fedavg", {10: [0.5]}) + make_rows("fedavg", {10: [0.6]}, suite="other")
    with pytest.raises(
        BadInput, match=r"made/up seed10-fedavg and other seed10-fedavg: .* different results"
    ):
        Results(rows)


def test_rows_of_two_numerics_versions_are_refused(make_rows):
    rows = make_rows("fedavg", {10: [0.5]}) + make_rows("gcfl", {10: [0.5]}, numerics_version="1")
    with pytest.raises(BadInput, match="numerics versions 1 and 2: a table uses runs of one"):
        Results(rows)


def test_other_clients_are_refused(make_rows):
    results = Results(make_rows("fedavg", {10: [0.5, 0.5]}) + make_rows("gcfl", {10: [0.5]}))
    with pytest.raises(BadInput, match="not the same clients for seed 10"):
        results.cell(FEDAVG).shared(results.cell(FEDAVG._replace(algorithm="gcfl")))


def test_a_blank_is_no_number(make_rows):
    cell = Results(make_rows("fedavg", {10: [0.5]})).cell(FEDAVG)
    assert str(cell.values("score_without_twins")) == "[[nan]]"


def test_a_suite_says_what_is_missing(make_rows):
    results = Results(make_rows("fedavg", {10: [0.5], 42: [0.5]}))
    cell = results.one("gcfl/table3", "dataset=PROTEINS method=fedavg")
    assert list(cell.runs) == [Repetition(123, 10), Repetition(123, 42)]
    assert cell.missing == (Repetition(123, 79), Repetition(123, 111), Repetition(123, 123))


def test_a_cell_is_one_configuration(empty):
    with pytest.raises(BadInput, match="7 configurations; a cell is one"):
        empty.one("gcfl/table3", "dataset=PROTEINS")
