"""Splits, ablation, leakage, what is open."""

import dataclasses

import pytest

from fedmpi.config import locations
from fedmpi.reproduction import openings, studies
from fedmpi.reproduction.cells import compare
from fedmpi.reproduction.published import read, read_claims
from fedmpi.reproduction.results import Results

GCFL = locations.find("gcfl/table3").parent
THRESHOLDS = "algorithm.eps1=0.03 algorithm.eps2=0.06 partition=chunks"


def lines(table):
    """Return the rows of a Markdown table without its head, each as its cells."""
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_every_method_is_paired_with_its_baselines(make_rows):
    rows = [
        *make_rows("self-train", {10: [0.5, 0.5]}, rounds="50"),
        *make_rows("self-train", {10: [0.6, 0.6]}),
        *make_rows("fedavg", {10: [0.7, 0.4]}, published={10: [0.7, 0.9]}),
    ]
    cells = studies.cells_of(Results(rows), "gcfl/table3")
    assert [line[:5] for line in lines(studies.lead_table(cells))] == [
        ["PROTEINS", "FedAvg, 200 rounds", "self-train, 50 rounds", "1", "+0.0500"],
        ["PROTEINS", "FedAvg, 200 rounds", "self-train, 200 rounds", "1", "-0.0500"],
        ["PROTEINS", "self-train, 200 rounds", "self-train, 50 rounds", "1", "+0.1000"],
    ]
    first = lines(studies.gain_table(cells))[0]
    assert first[4:] == ["-0.1000 (client-1); 1/2", "-0.1000 (client-1); 1/2", "+0.2000 (client-0); 2/2"]


def test_both_deviations_stand_beside_the_published_one(make_rows):
    results = Results(make_rows("fedavg", {10: [0.7, 0.5], 42: [0.5, 0.7]}))
    cells = studies.cells_of(results, "gcfl/table3")
    (line,) = lines(studies.spread_table(cells, read(GCFL / "published.csv"), results))
    # Each client deviates by 0.2 / root 2, their average not at all.
    assert line == ["PROTEINS", "FedAvg, 200 rounds", "2", *["0.1414, 0.0000"] * 3, "0.034"]


def test_agreement_with_domains_names_the_settings_that_differ_and_leaves_out_other_runs(make_rows):
    group = {"dataset": "fedcch/bio-cv"}
    usual = "batch_size=64 model.norm={} optimizer.weight_decay=5e-05 subnormals=flushed"
    with_pf, without = (group | {"options": usual.format(norm)} for norm in ("graph", "batch"))
    rows = [
        *make_rows("fedcch", {1: [0.5, 0.5]}, **with_pf, domain_agreement="0.25"),
        *make_rows("fedcch", {2: [0.5, 0.5]}, **with_pf, domain_agreement="0.75"),
        *make_rows("fedcch", {3: [0.5, 0.5]}, **with_pf),
        *make_rows("fedcch", {1: [0.5, 0.5]}, **without, domain_agreement="-0.125"),
        *make_rows("fedavg", {1: [0.5, 0.5]}, **with_pf),
    ]
    cells = studies.cells_of(Results(rows), "fedcch/table1")
    assert sorted(line[1:] for line in lines(studies.domain_table(cells))) == [
        ["FedCCH, 200 rounds", "model.norm = batch", "1", "-0.125", "-0.12"],
        ["FedCCH, 200 rounds", "model.norm = graph", "2", "0.500", "0.25, 0.75"],
    ]
    without = Results(make_rows("fedavg", {10: [0.5]}))
    assert studies.domain_table(studies.cells_of(without, "gcfl/table3")) == ""


@pytest.fixture
def over_splits(make_rows):
    """GCFL+ leads FedAvg by 0.02 on the published split and by 0 on two others."""
    rows = make_rows("fedavg", {10: [0.70], 42: [0.72]}) + make_rows(
        "gcfl-plus", {10: [0.72], 42: [0.74]}, options=THRESHOLDS
    )
    for split in ("1", "2"):
        rows += make_rows("fedavg", {10: [0.6]}, split_seed=split)
        rows += make_rows("gcfl-plus", {10: [0.6]}, split_seed=split, options=THRESHOLDS)
    return Results(rows)


def test_accuracies_by_split(over_splits):
    table = lines(studies.split_accuracies(over_splits, "gcfl/table3", "gcfl/splits"))
    assert [line[:6] for line in table] == [
        ["PROTEINS", "FedAvg, 200 rounds", "2", "2", "0.7100, 0.0141", "0.6000, 0.0000"],
        ["PROTEINS", "GCFL+, 200 rounds", "2", "2", "0.7300, 0.0141", "0.6000, 0.0000"],
    ]


def test_leads_of_the_published_split_stay_apart_from_those_of_others(over_splits):
    claims, figures = read_claims(GCFL / "claims.csv"), read(GCFL / "published.csv")
    (line,) = lines(studies.split_leads(over_splits, "gcfl/splits", claims, figures))
    assert line[:4] == [
        "GCFL+ over FedAvg on PROTEINS", "+0.0286", "+0.0200 ± 0.0000 (2 seeds)", "+0.0000 ± 0.0000 (2 splits)",
    ]  # fmt: skip
    assert line[4] == "undecided at 2 splits, about 3 needed"


def test_a_switch_is_set_against_the_reference_and_its_own_fedavg(make_rows):
    reference = {10: [0.70, 0.60], 42: [0.72, 0.62], 79: [0.71, 0.61]}
    weighted = THRESHOLDS.replace("algorithm.", "algorithm.criterion=weighted algorithm.", 1)
    shared = f"{THRESHOLDS} share=all"
    less = {seed: [value - 0.1 for value in values] for seed, values in reference.items()}
    rows = [
        *make_rows("gcfl", reference, options=THRESHOLDS),
        *make_rows("gcfl", reference, options=weighted),
        *make_rows("gcfl", less, options=shared),
        *make_rows("fedavg", less, options="partition=chunks share=all"),
        *make_rows("fedavg", reference),
    ]
    table = lines(studies.ablation_table(Results(rows), "gcfl/ablation", "gcfl/table3"))
    assert [line[:8] for line in table] == [
        ["PROTEINS", "FedAvg", "share = all", "3", "0.5600", "-0.1000 ± 0.0000", "yes", "-"],
        ["PROTEINS", "GCFL", "criterion = weighted", "3", "0.6600", "+0.0000 ± 0.0000", "none: identical", "+0.0000 ± 0.0000"],
        ["PROTEINS", "GCFL", "share = all", "3", "0.5600", "-0.1000 ± 0.0000", "yes", "+0.0000 ± 0.0000"],
    ]  # fmt: skip


def test_the_paper_s_protocol_is_one_switch(make_rows):
    paper = f"{THRESHOLDS.removesuffix(' partition=chunks')} algorithm.protocol=paper partition=chunks"
    rows = make_rows("gcfl", {10: [0.7]}, options=THRESHOLDS) + make_rows("gcfl", {10: [0.5]}, options=paper)
    (line,) = lines(studies.ablation_table(Results(rows), "gcfl/ablation", "gcfl/table3"))
    assert line[:7] == ["PROTEINS", "GCFL", "protocol = paper", "1", "0.5000", "-0.2000", "not shown"]


def test_graphs_with_twins_are_left_out(make_rows):
    clean = {f"score_without_twins{rule}": "0.5" for rule in ("", "_best_by_validation", "_as_published")}
    rows = make_rows("fedavg", {10: [0.7, 0.9]}, **clean, test_graphs_without_twins="4")
    rows[1] |= dict.fromkeys(clean, "") | {"test_graphs_without_twins": "0"}
    (line,) = lines(studies.clean_table(studies.cells_of(Results(rows), "gcfl/table3")))
    assert line[2:] == ["1", "20", "4", "0.8000", "0.5000", "0.5000", "0.5000", "-", "-"]


def test_open_cells_come_with_a_command_and_the_time_that_equal_cases_took(make_rows):
    rows = make_rows("fedavg", {10: [0.7], 42: [0.7]}) + make_rows(
        "fedprox", {seed: [0.7] for seed in (10, 42, 79, 111, 123)}
    )
    results = Results(rows)
    figures = [each for each in read(GCFL / "published.csv") if each.column == "PROTEINS (10)"]
    table = openings.open_table(compare(figures, results))
    command = "`fedmpi sweep gcfl/table3 --set dataset=PROTEINS --set method="
    assert [line.partition("(10) | ")[2] for line in table.splitlines()[2:4]] == [
        f"self-train | 0 of 5 | {command}self-train-50` |",
        f"FedAvg | 2 of 5 | {command}fedavg` |",
    ]
    assert "FedProx" not in table
    text = openings.queue_table(results, ["gcfl/table3"])
    waiting = "PROTEINS | seed 79, seed 111, seed 123 | FedAvg, 200 rounds | 3 | 3"
    assert f"| `fedmpi sweep gcfl/table3` | {waiting} |" in text
    queue = lines(text)
    assert [line[-1] for line in queue].count("never run") == len(queue) - 1


def test_cells_count_once_by_their_repetitions(make_rows):
    rows = make_rows("fedavg", {10: [0.7], 42: [0.7]}) + make_rows("fedprox", {10: [0.7]})
    figures = [each for each in read(GCFL / "published.csv") if each.column == "PROTEINS (10)"]
    figures += [dataclasses.replace(each, reading="another") for each in figures]
    found = compare(figures, Results(rows))
    assert openings.coverage(found) == {0: 3, 1: 1, 2: 1}
    assert openings.coverage_text(found) == "- 5 cells published: 1 with 2 runs, 1 with 1 run, 3 not run.\n"
    (line,) = lines(openings.coverage_table({"GCFL": openings.coverage(found)}))
    assert line == ["GCFL", "5", "1", "1", "3"]


def test_cells_that_were_never_run_are_open_or_lack_more_than_runs(empty):
    figures = read(locations.find("fedgraphnn/table2").with_name("published.csv"))
    found = compare(figures, empty)
    assert openings.coverage(found) == {0: 96}
    table = lines(openings.open_table(found))
    assert len(table) == len({each.cell for each in figures if not each.lacks}) == 48 + 12 + 12
    table = lines(openings.lacking_table(found))
    assert [line[:3] for line in table] == [
        *(["Table 20", name, "6"] for name in ("hERG", "QM9")),
        *(["Table 4", name, "6"] for name in ("CORA", "PUBMED")),
    ]
    assert table[0][4:] == ["the data are not public", "-"]
    assert table[1][5] == "`fedmpi sweep fedgraphnn/table20-qm9`"
    queue = lines(openings.queue_table(empty, ["fedgraphnn/table2"]))
    assert {line[2] for line in queue} == {"seed 1, seed 2, seed 3, seed 4, seed 5"}


def test_a_finished_suite_has_no_queue(make_rows):
    names = ("fedavg", "fedprox", "self-train")
    rows = [row for algorithm in names for row in make_rows(algorithm, {10: [0.7]})]
    last = make_rows("self-train", {10: [0.7]}, rounds="50")
    assert openings.queue_table(Results(rows), ["gcfl/proteins"]) != ""
    assert openings.queue_table(Results(rows + last), ["gcfl/proteins"]) == ""
