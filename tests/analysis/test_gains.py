from pathlib import Path

import pytest

from fedmpi.analysis.gains import accuracies, gain, spread_table, table
from fedmpi.analysis.published import Published
from fedmpi.analysis.rows import COLUMNS
from fedmpi.cli.report import reproduction
from fedmpi.errors import BadInput


def rows(algorithm, rounds, last, published=None):
    """Return rows from accuracies by seed and client; validation's are all 0.5."""
    return [
        {
            **dict.fromkeys(COLUMNS, "0"),
            **{"dataset": "D", "algorithm": algorithm, "rounds": rounds, "seed": seed, "client": client},
            "test_accuracy": str(value),
            "test_accuracy_best_by_validation": "0.5",
            "test_accuracy_as_published": str((published or last)[seed][client]),
        }
        for seed, found in last.items()
        for client, value in found.items()
    ]


ALONE = {"1": {"a": 0.7, "b": 0.6}, "2": {"a": 0.5, "b": 0.6}, "3": {"a": 0.1, "b": 0.1}}
OURS = {"1": {"a": 0.8, "b": 0.5}, "2": {"a": 0.6, "b": 0.6}}


def test_gains_are_of_the_seeds_that_both_have_and_client_by_client():
    found = gain(OURS, ALONE)
    assert (found.seeds, found.client, found.improved, found.clients) == (2, "b", 1, 2)
    assert found.least == pytest.approx(-0.05)
    # differences of the averages: 0 and 0.05; t(0.975, 1) = 12.706, std 0.03536, over the root of 2
    assert str(found.mean) == "0.0250 ± 0.3177"


def test_no_gain_counts_as_improved_also_in_floating_point():
    ours = {"1": {"a": 0.1, "b": 0.7}, "2": {"a": 0.2, "b": 0.7}, "3": {"a": 0.3, "b": 0.7}}
    alone = {"1": {"a": 0.3, "b": 0.7}, "2": {"a": 0.1, "b": 0.7}, "3": {"a": 0.2, "b": 0.7}}
    assert str(gain(ours, alone)) == "+0.0000 ± 0.2151; +0.0000 (a); 2/2"


def test_without_a_common_seed_there_is_no_gain():
    assert gain(OURS, {"9": {"a": 0.5, "b": 0.5}}) is None


def test_other_clients_are_refused():
    with pytest.raises(BadInput, match="other clients"):
        gain(OURS, {"1": {"a": 0.5, "c": 0.5}})
    with pytest.raises(BadInput, match="not the same clients for each seed"):
        accuracies(rows("fedavg", "200", {"1": {"a": 0.1}, "2": {"b": 0.1}}), "test_accuracy")
    with pytest.raises(BadInput, match="a twice for seed 1"):
        accuracies(rows("fedavg", "200", {"1": {"a": 0.1}}) * 2, "test_accuracy")


def test_the_table_has_each_self_train_and_each_rule():
    given = [
        *rows("self-train", "50", {"1": {"a": 0.5, "b": 0.5}}),
        *rows("self-train", "200", {"1": {"a": 0.6, "b": 0.6}}),
        *rows("gcfl", "200", {"1": {"a": 0.7, "b": 0.4}}, {"1": {"a": 0.7, "b": 0.9}}),
    ]
    assert table(given).splitlines()[2:] == [
        "| D | gcfl, 200 rounds | self-train, 50 rounds | 1 | +0.0500; -0.1000 (b); 1/2 | +0.0000; +0.0000 (a); 2/2 | +0.3000; +0.2000 (a); 2/2 |",
        "| D | gcfl, 200 rounds | self-train, 200 rounds | 1 | -0.0500; -0.2000 (b); 1/2 | +0.0000; +0.0000 (a); 2/2 | +0.2000; +0.1000 (a); 2/2 |",
        "| D | self-train, 200 rounds | self-train, 50 rounds | 1 | +0.1000; +0.1000 (a); 2/2 | +0.0000; +0.0000 (a); 2/2 | +0.1000; +0.1000 (a); 2/2 |",
    ]


def test_both_kinds_of_spread_stand_beside_the_published_one():
    given = rows("gcfl", "200", {"1": {"a": 0.7, "b": 0.5}, "2": {"a": 0.5, "b": 0.7}})
    paper = Published("paper", 5, 0.6, 0.059, (), "", "")
    (line,) = spread_table(given, {("D", "gcfl", 200): [paper]}).splitlines()[2:]
    # each client deviates by 0.2 / root 2, their average not at all
    assert line == "| D | gcfl, 200 rounds | 2 | 0.1414, 0.0000 | 0.0000, 0.0000 | 0.1414, 0.0000 | 0.059 |"


def test_one_seed_has_no_spread():
    (line,) = spread_table(rows("gcfl", "200", {"1": {"a": 0.7}}), {}).splitlines()[2:]
    assert line == "| D | gcfl, 200 rounds | 1 | - | - | - | - |"


def test_reproduction_prints_four_tables(capsys):
    root = Path(__file__).parents[2]
    figures = root / "bench" / "gcfl" / "published.csv"
    assert reproduction([root / "results" / "reference" / "gcfl-baselines.csv"], figures) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| dataset")]
    assert [heading.split(" | ")[2] for heading in headings] == ["seeds", "against", "over", "seeds"]
