"""What `fedmpi analyse` prints."""

import json

from fedmpi.cli import analyse
from fedmpi.cli.options import Data
from tests.refusals import refused


def test_properties_stand_beside_the_papers(real_data, capsys):
    assert analyse.properties(Data(), ["PTC_MR"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    (row,) = [line for line in lines if line[:2] == ["PTC_MR", "clustering"]]
    assert row[2] == row[7] == "0.0095"


def test_statistics_in_json(real_data, capsys):
    analyse.statistics(Data(), ["MUTAG"], as_json=True)
    (row,) = json.loads(capsys.readouterr().out)["statistics"]
    assert (row["name"], row["graphs"], row["classes"]) == ("MUTAG", 188, 2)


def test_heterogeneity_across_two_datasets(real_data, capsys):
    analyse.heterogeneity(Data(), analyse.Walks(), ["COX2", "PTC_MR"], as_json=True)
    printed = json.loads(capsys.readouterr().out)
    (row,) = printed["heterogeneity"]
    assert (printed["length"], printed["walks"], printed["seed"]) == (4, None, 0)
    assert (row["datasets"], row["structure"]["pairs"]) == (["COX2", "PTC_MR"], 467 * 344)


def test_leakage_has_one_table_per_partition(tiny_suite, capsys):
    assert analyse.leakage(str(tiny_suite), Data()) == 0  # three algorithms, one partition
    out = capsys.readouterr().out
    assert out.count("distinct: ") == 1
    (total,) = [line.split() for line in out.splitlines() if line.lstrip().startswith("all")]
    assert total[1] == "12"


def test_leakage_of_one_case_in_json(tiny_suite, capsys):
    analyse.leakage(str(tiny_suite), Data(), case="1", as_json=True)
    (record,) = json.loads(capsys.readouterr().out)["leakage"]
    assert record["partition"]["name"] == "per-dataset"
    assert [client["test"] for client in record["clients"]] == [4, 4, 4]


def test_mistakes_are_told_in_one_line(tiny_suite):
    with refused(match="--case 9: not among the cases 0 to 2"):
        analyse.leakage(str(tiny_suite), Data(), case="9")
    with refused(match="2 to 7 steps"):
        analyse.heterogeneity(Data(), analyse.Walks(length=1), ["COX2"])
    with refused(match="1 to 1000000 walks"):
        analyse.heterogeneity(Data(), analyse.Walks(walks=0), ["COX2"])
