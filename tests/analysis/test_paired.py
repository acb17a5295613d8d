from fedmpi.analysis.paired import difference, table
from fedmpi.analysis.rows import COLUMNS


def row(algorithm, rounds, seed, client, last, published):
    values = {"dataset": "D", "algorithm": algorithm, "rounds": rounds, "seed": seed, "client": client}
    return {
        **dict.fromkeys(COLUMNS, "0"),
        **values,
        "test_accuracy": last,
        "test_accuracy_best_by_validation": "0.5",
        "test_accuracy_as_published": published,
    }


def test_only_seeds_that_both_have_are_paired():
    gap, count = difference({"1": 0.8, "2": 0.7, "3": 0.1}, {"1": 0.7, "2": 0.5, "9": 0.9})
    assert count == 2
    # t(0.975, 1) = 12.706, std of 0.1 and 0.2 = 0.0707, over the root of 2
    assert str(gap) == "0.1500 ± 0.6353"


def test_the_table_compares_under_the_same_rule():
    rows = [
        row("gcfl", "200", "1", "a", "0.7", "0.9"), row("gcfl", "200", "1", "b", "0.5", "0.9"),
        row("fedavg", "200", "1", "a", "0.8", "0.8"), row("fedavg", "200", "1", "b", "0.6", "0.6"),
        row("self-train", "50", "1", "a", "0.5", "0.5"), row("self-train", "50", "1", "b", "0.5", "0.5"),
    ]  # fmt: skip
    lines = table(rows).splitlines()[2:]
    assert lines == [
        "| D | gcfl | fedavg, 200 rounds | 1 | -0.1000 | +0.0000 | +0.2000 |",
        "| D | gcfl | self-train, 50 rounds | 1 | +0.1000 | +0.0000 | +0.4000 |",
        "| D | fedavg | self-train, 50 rounds | 1 | +0.2000 | +0.0000 | +0.2000 |",
    ]
