"""The leaderboard: the same number of candidates for all, winners by validation, ranks and leads worked out by hand."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from fedmpi.analysis.leaderboard import findings, tables
from fedmpi.analysis.leaderboard import row_files as files
from fedmpi.analysis.leaderboard.board import CONSTANT, board
from fedmpi.analysis.leaderboard.costs import SECONDS, cost
from fedmpi.analysis.leaderboard.page import earlier_pages, pages
from fedmpi.analysis.leaderboard.rows import ALONE, FINAL, TUNING, Constant, Row, chosen, differences
from fedmpi.analysis.leaderboard.track import EARLIER, merged, stored, track, tuned_suite, tuned_text
from fedmpi.cli.leaderboard import ROWS, TRACKS
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.errors import BadInput
from fedmpi.registry.check import check_suite

ROOT = Path(__file__).parents[2]
SUITE = """
name = "demo/graphs"
where = [
    { when = { algorithm = "fedprox", setting = "b" }, set = { algorithm = { mu = 1.0 } } },
    { when = { algorithm = "fedavg", setting = "b" }, set = { optimizer = { lr = 0.02 } } },
    { when = { algorithm = "self-train", setting = "b" }, set = { optimizer = { lr = 0.03 } } },
    { when = { data = "two", algorithm = "self-train" }, skip = true },
]
[case]
dataset = "synthetic"
rounds = 2
[matrix]
data = [
    { label = "one", partition = { name = "per-dataset", seed = 0 } },
    { label = "two", partition = { name = "per-dataset", tiny = true, seed = 0 } },
]
algorithm = ["fedavg", "fedprox", "self-train"]
setting = [{ label = "a", optimizer = { lr = 0.01 } }, { label = "b", optimizer = { lr = 0.01 } }]
"""


def track_of(folder, text, name="graphs"):
    """Return the track of a suite, TOML."""
    path = folder / f"{name}.toml"
    path.write_text(text)
    return track(path)


def page_of(found):
    """Return the page of one board."""
    return pages([found], "board.md")["board.md"]


@pytest.fixture
def demo(tmp_path):
    return track_of(tmp_path, SUITE)


def row(data, method, seed, test, stage=FINAL, status="complete", **other) -> Row:
    own = {"settings": "", "commit": "", "config_digest": "0" * 64, "results_digest": "0" * 64}
    numbers = dict.fromkeys(("bytes_per_client", "model_gflop", "cpu_seconds"), 1000.0)
    never = dict.fromkeys(("target", "rounds_to_target", "cpu_seconds_to_target"), math.nan)
    values = {**own, **numbers, **never, "case": f"{data}-{method}-seed{seed}", "metric": "accuracy"}
    values |= {"best_round": 1, "val": test, "clients": 2, "numerics_version": 2} | other
    return Row("graphs", data, method, stage, seed=seed, status=status, test=test, **values)


def runs(data, method, *, mean, spread=0.0, **other) -> list[Row]:
    """Return ten rows, half of them `spread` above the mean and half below."""
    spreads = [spread if seed % 2 else -spread for seed in range(1, 11)]
    return [row(data, method, seed, mean + each, **other) for seed, each in enumerate(spreads, 1)]


def test_a_track_has_the_same_number_of_candidates_for_all(demo):
    assert {len(cases) for cases in demo.candidates.values()} == {2}
    assert list(demo.pairs) == ["one-fedavg", "one-fedprox", "one-self-train", "two-fedavg", "two-fedprox"]


FEWER = SUITE.replace('algorithm = "self-train" }', 'algorithm = "self-train", setting = "b" }')
WHOLE = SUITE.replace('{ data = "two", ', "{ ")
ALIKE = """
name = "alike"
[matrix]
data = [{ label = "A", partition.seed = 1 }, { label = "A-B", partition.seed = 2 }]
setting = [{ label = "a", rounds = 1 }]
algorithm = [{ label = "B-C", algorithm = "fedavg" }, { label = "C", algorithm = "fedprox" }]
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FEWER, "methods have 1, 2 candidates; a leaderboard gives all of them"),
        (
            WHOLE.replace("rounds = 2", "rounds = 2\nseed = 3"),
            "seed 3 is one of the winners' (1 to 10): tune on",
        ),
        (WHOLE.replace("\ndata = [", "\nplace = ["), "its suite needs the axes data and algorithm"),
        (ALIKE, "A-B-C is the label of 2 pairs"),
    ],
)
def test_what_is_no_track_is_refused(tmp_path, text, words):
    with pytest.raises(BadInput, match=re.escape(words)):
        track_of(tmp_path, text)


def test_the_earlier_tracks_tune_all_methods_alike():
    for name in EARLIER:
        found = track(locations.find(f"leaderboard/{name}"))
        assert {len(cases) for cases in found.candidates.values()} == {4}
        for cases in found.candidates.values():
            assert len({tuned_text(case.settings, cases) for case in cases}) == 4


def test_the_suite_of_the_winners_runs_their_settings_with_ten_seeds(demo, tmp_path):
    fedprox = demo.candidates["one", "fedprox"][1].settings
    demo.tuned_file.write_text(tuned_suite(demo, {"one-fedprox": fedprox}))
    cases = [item.case for item in check_suite(read(demo.tuned_file))]
    assert [case.name for case in cases] == [f"one-fedprox-seed{seed}" for seed in range(1, 11)]
    drawn = {(case.seed, case.partition.seed, case.algorithm.mu) for case in cases}
    assert drawn == {(seed, seed, 1.0) for seed in range(1, 11)}
    assert cases[0].optimizer.lr == 0.01


def test_new_winners_take_the_place_of_earlier_ones_and_others_stay(demo):
    first, second = (demo.candidates["one", "fedavg"][place].settings for place in (0, 1))
    demo.tuned_file.write_text(tuned_suite(demo, {"one-fedavg": first, "two-fedprox": first}))
    found = merged(demo, stored(demo), {("one", "fedavg"): second, ("one", "fedprox"): first})
    assert list(found) == ["one-fedavg", "one-fedprox", "two-fedprox"]
    assert [each["optimizer"]["lr"] for each in found.values()] == [0.02, 0.01, 0.01]


def test_settings_are_named_that_set_candidates_apart(demo):
    cases = demo.candidates["one", "fedprox"]
    config = {item.case.name: item.case.config() for item in check_suite(demo.suite)}
    texts = [tuned_text(config[case.name], cases) for case in cases]
    assert texts == ["algorithm.mu=0.01", "algorithm.mu=1.0"]


SEARCH = """
name = "demo/search"
draws = 3
where = [{ when = {}, draw = { optimizer = { lr = { log-uniform = [1e-3, 1.0] } } } }]
[case]
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 60 } }
[matrix]
data = [{ label = "one", batch_size = 8 }]
how = [{ label = "iid", partition = { name = "iid", clients = 2 } }]
algorithm = ["fedavg"]
seed = [
    { label = "seed201", seed = 201, partition = { seed = 201 } },
    { label = "seed202", seed = 202, partition = { seed = 202 } },
]
"""


def test_the_best_mean_over_seeds_wins_and_who_has_not_completed_on_all_has_lost(tmp_path):
    found = track_of(tmp_path, SEARCH)
    assert list(found.candidates) == [("one-iid", "fedavg")] and len(found.suite.cases) == 6
    cases = {case.name: case.settings for case in found.suite.cases}

    def rows(**scores):
        for name, settings in cases.items():
            score = scores[name.rpartition("-")[2]][settings["seed"] - 201]
            yield row("one-iid", "fedavg", settings["seed"], score, TUNING, case=name)

    first = cases["one-iid-fedavg-seed201-draw1"]
    won = chosen(found, rows(draw1=(0.6, 0.6), draw2=(0.9, 0.2), draw3=(0.99, math.nan)))
    assert won["one-iid", "fedavg"]["optimizer"] == first["optimizer"]
    equal = chosen(found, rows(draw1=(0.3, 0.6), draw2=(0.5, 0.4), draw3=(0.1, 0.1)))  # but for the last bit
    assert equal["one-iid", "fedavg"]["optimizer"] == first["optimizer"]
    assert chosen(found, rows(draw1=(math.nan, 0.6), draw2=(0.9, math.nan), draw3=(math.nan, 1.0))) == {}
    listed = found.candidates["one-iid", "fedavg"]
    assert tuned_text(first, listed) == f"optimizer.lr={first['optimizer']['lr']}"


def test_ranks_are_averages_and_who_cannot_run_is_last(demo):
    rows = runs("one", "fedavg", mean=0.5) + runs("one", "fedprox", mean=0.7)
    rows += runs("one", "self-train", mean=0.5)
    rows += runs("two", "fedavg", mean=0.4) + runs("two", "fedprox", mean=0.6)
    found = board(demo, rows)
    assert found.ranks == {"fedavg": [2.5, 2.0], "fedprox": [1.0, 1.0], "self-train": [2.5, 3.0]}
    assert found.competitors == ["fedprox", "fedavg", "self-train"]
    assert found.average("fedavg") == 2.25
    assert found.ranking is not None
    # Demsar's q at 5 % is 2.343 for three methods: 2.343 * sqrt(3 * 4 / (6 * 2)).
    assert found.ranking.critical_difference == pytest.approx(2.343, abs=1e-3)
    assert found.open == {}


def test_a_method_that_diverges_has_no_score_and_missing_runs_are_open(demo):
    rows = runs("one", "fedavg", mean=0.5)[:9]
    rows += [*runs("one", "fedprox", mean=0.7)[:9], row("one", "fedprox", 10, math.nan, status="diverged")]
    lost = ("two", "fedprox", 0, math.nan, TUNING, "diverged")
    rows += [row(*lost, case=f"two-fedprox-{each}") for each in "ab"]
    found = board(demo, rows)
    states = {pair: entry.state for pair, entry in found.entries.items()}
    assert states["one", "fedprox"] == states["two", "fedprox"] == "diverged"
    assert states["two", "self-train"] == "none"
    assert states["one", "fedavg"] == states["two", "fedavg"] == states["one", "self-train"] == "open"
    assert found.open == {"one": 2, "two": 1}
    assert found.ranking is None


def test_leads_are_paired_by_seed(demo):
    rows = runs("one", "fedavg", mean=0.5, spread=0.2) + runs("one", "fedprox", mean=0.51, spread=0.19)
    rows += runs("one", "self-train", mean=0.5, spread=-0.2)
    found = board(demo, rows)
    # FedProx: 0.00 or 0.02 more, mean 0.01 of standard error 0.0033; self-train: 0.4 more or less, mean 0.
    # So 1 / 3 and 40 / 3 points; Student's quantile for two comparisons is 2.685 (9 degrees, 0.9875).
    assert found.least_significant("one") == pytest.approx(2.685 * (1 + 40) / 3 / 2, rel=1e-3)
    assert math.isnan(found.least_significant("two"))
    assert found.verdicts("one") == {"fedprox": "better", "self-train": "undecided"}
    assert found.tally("fedprox", "fedavg") == (1, 0)


def constants_of(data, mean):
    """Return ten constants."""
    return [Constant("graphs", data, seed, "accuracy", mean) for seed in range(1, 11)]


@pytest.fixture
def wide(tmp_path):
    """Return a track of three federations on which all three methods run."""
    two = next(line for line in SUITE.splitlines() if 'label = "two"' in line)
    three = two.replace('"two"', '"three"').replace("seed = 0", "seed = 20")
    whole = SUITE.replace(two, f"{two}\n{three}")
    return track_of(tmp_path, "\n".join(line for line in whole.splitlines() if "skip = true" not in line))


def test_methods_are_held_against_a_constant_prediction(wide):
    methods, rows = ("fedavg", "fedprox", "self-train"), []
    for data, scores in {"one": (0.7, 0.8, 0.5), "two": (0.7, 0.6, 0.9), "three": (0.5, 0.2, 0.6)}.items():
        for method, mean, spread in zip(methods, scores, (0.01, -0.01, 0.02), strict=True):
            rows += runs(data, method, mean=mean, spread=spread)
    known = [*constants_of("one", 0.6), *constants_of("two", 0.4), *constants_of("three", 0.55)]
    found = board(wide, rows, known)
    assert [found.tally(name, CONSTANT) for name in methods] == [(2, 1)] * 3
    assert found.not_learned == ["three"]
    unknown = board(wide, rows, [each for each in known if each.data != "two"])
    assert [unknown.tally(name, CONSTANT) for name in methods] == [(1, 1)] * 3
    text = page_of(found)
    assert (
        "On 1 of 3 federations at most one method is significantly better than a constant prediction: three."
        in text
    )
    assert "| *constant prediction* | 60.00 ± 0.00 | 40.00 ± 0.00 | 55.00 ± 0.00 |" in text
    assert "| better / worse than the constant | 2 / 1 of 3 | 3 / 0 of 3 | 1 / 2 of 3 |" in text


def test_where_constants_or_runs_are_missing_nothing_is_said(demo):
    rows = runs("one", "fedavg", mean=0.5, spread=0.01) + runs("one", "fedprox", mean=0.5, spread=0.01)
    unfinished = board(demo, rows, constants_of("one", 0.6))
    assert unfinished.verdicts("one", CONSTANT) == {} and unfinished.not_learned == []
    rows += runs("one", "self-train", mean=0.5, spread=0.01)
    assert board(demo, rows, constants_of("one", 0.6)[:9]).verdicts("one", CONSTANT) == {}
    whole = board(demo, rows, constants_of("one", 0.6))
    assert set(whole.verdicts("one", CONSTANT).values()) == {"worse"}
    assert "against the constant" not in tables.ranks(board(demo, rows))


def test_a_run_that_diverges_counts_as_the_constant_in_leads_and_not_in_verdicts(demo):
    rows = runs("one", "fedavg", mean=0.5) + runs("one", "self-train", mean=0.5)
    rows += [*runs("one", "fedprox", mean=0.7)[:9], row("one", "fedprox", 10, math.nan, status="diverged")]
    found = board(demo, rows, constants_of("one", 0.4))
    assert found.leads("fedprox") == [pytest.approx(9 / 10 * 20 - 1 / 10 * 10)]
    assert "fedprox" not in found.verdicts("one") and found.finished == ["one"]
    assert board(demo, rows).leads("fedprox") == []


def test_constants_survive_their_file_and_a_damaged_one_is_refused(tmp_path):
    path = files.constants_beside(tmp_path / "graphs.csv")
    assert files.read_constants(path) == []
    listed = constants_of("one", 1 / 3)
    path.parent.mkdir()
    path.write_text(files.as_csv(Constant, listed))
    assert files.read_constants(path) == listed
    for old, new in ((",1,", ",11,"), ("0.33", "x"), ("seed", "sed"), (",accuracy,", ",")):
        path.write_text(files.as_csv(Constant, listed).replace(old, new, 1))
        with pytest.raises(BadInput, match=r"damaged|columns differ"):
            files.read_constants(path)


def test_costs_are_in_those_of_fedavg(demo):
    reached = {"rounds_to_target": 2.0, "cpu_seconds_to_target": 4.0, "bytes_to_target": 8.0}
    rows = runs("one", "self-train", mean=0.5) + runs("one", "fedavg", mean=0.5, **reached)
    rows += runs("one", "fedprox", mean=0.5, model_gflop=3000.0, bytes_per_client=5000.0)
    for place, seconds in enumerate((2.0, 2.0, 2.0, 6.0, 6.0, 6.0), 20):
        spent = {"rounds_to_target": 1.0, "cpu_seconds_to_target": seconds, "bytes_to_target": 4.0}
        rows[place] = replace(rows[place], **spent)
    rows = [replace(each, target=0.5) for each in rows]
    found = cost(board(demo, rows), "fedprox")
    assert (found.kilobytes, found.flops, found.reached) == (5.0, pytest.approx(3.0), 0.6)
    # In FedAvg's: three times 0.5, three times 1.5, four runs never: the fifth and sixth are 1.5.
    assert found.to_target[SECONDS] == 1.5 and found.to_target["bytes_to_target"] == 0.5
    assert math.isnan(found.to_target["virtual_seconds_to_target"])
    lost = board(demo, [row for place, row in enumerate(rows) if place not in (24, 25)])
    assert math.isnan(cost(lost, "fedprox").to_target[SECONDS])

    measured = {"rounds_to_target": 1.0, "cpu_seconds_to_target": 0.0, "target": 0.5}
    rows = runs("one", "fedavg", mean=0.5, model_gflop=0.0, **measured) + runs("one", "fedprox", mean=0.5)
    rows += runs("one", "self-train", mean=0.5)
    fedavg, fedprox, other = (cost(board(demo, rows), name) for name in ("fedavg", "fedprox", "other"))
    assert fedavg.reached == 1.0
    lacking = (fedavg.flops, fedavg.to_target[SECONDS], fedprox.flops, fedprox.reached, other.kilobytes)
    assert all(math.isnan(each) for each in lacking)  # without a measurement or a target


def test_rows_survive_their_file_and_differences_are_named(tmp_path):
    written = [row("one", "fedavg", 1, 0.5, results_digest="a" * 64)]
    written.append(row("one", "fedavg", 2, math.nan, status="diverged"))
    path = tmp_path / "rows.csv"
    path.write_text(files.as_csv(Row, written))
    again = files.read(path)
    assert differences(written, again) == []
    assert again[0] == written[0] or math.isnan(again[0].target)
    other = [row("one", "fedavg", 1, 0.5, results_digest="b" * 64, cpu_seconds=7.0)]
    assert differences(written, other) == [
        f"final one-fedavg-seed1: results_digest {'a' * 64} -> {'b' * 64}",
        "final one-fedavg-seed2: not computed",
    ]


def test_columns_that_an_earlier_file_lacks_are_empty_and_not_compared(tmp_path):
    whole = [row("one", "fedavg", 1, 0.5, worst_decile=0.25, gflop_to_target=2.0)]
    path = tmp_path / "rows.csv"
    path.write_text(
        "track,data,method,stage,case,seed,status,settings,metric,best_round,val,test,clients,bytes_per_client,"
        "model_gflop,cpu_seconds,target,rounds_to_target,cpu_seconds_to_target,commit,numerics_version,"
        "config_digest,results_digest\n"
        "graphs,one,fedavg,final,one-fedavg-seed1,1,complete,,accuracy,1,0.5,0.5,2,1000.0,1000.0,1000.0,,,,,2,"
        f"{'0' * 64},{'0' * 64}\n"
    )
    earlier = files.read(path)
    assert math.isnan(earlier[0].worst_decile) and math.isnan(earlier[0].gflop_to_target)
    assert differences(earlier, whole) == differences(whole, earlier) == []
    other = [replace(whole[0], worst_decile=0.5)]
    assert differences(whole, other) == ["final one-fedavg-seed1: worst_decile 0.25 -> 0.5"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("track,data", "suite,case", "its columns differ"),
        (",0.5,0.5,", ",half,0.5,", "line 2: val = half; the file is damaged"),
        (",0.5,0.5,", ",1e300,0.5,", "line 2: val = 1e300"),
        (",0.5,0.5,", ",0.5,inf,", "line 2: test = inf"),
        (",0.25,", ",-0.25,", "line 2: model_gflop = -0.25"),
        (",complete,", ",done,", "line 2: status = done"),
        (",final,", ",last,", "line 2: stage = last"),
        ("seed1,1,", "seed1,1_0,", "line 2: seed = 1_0"),
        ("seed1,1,", "seed1,11,", r"line 2: seed 11 is none of the winners' \(1 to 10\)"),
        ("0\n", "", "line 2: results_digest = 0{60}"),
        (",fedavg,final", ",,final", "line 2: method = "),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, old, new, words):
    path = tmp_path / "rows.csv"
    text = files.as_csv(Row, [row("one", "fedavg", 1, 0.5, model_gflop=0.25)])
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(BadInput, match=words):
        files.read(path)


def test_rows_that_are_there_twice_or_of_another_track_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(files.as_csv(Row, [row("one", "fedavg", 1, 0.5)]))
    with pytest.raises(BadInput, match="two rows of graphs, final one-fedavg-seed1"):
        files.read(path, path)
    with pytest.raises(BadInput, match="rows of graphs, not of nodes"):
        files.refuse_other_tracks(path, files.read(path), "nodes")
    with pytest.raises(BadInput, match="/dev/zero: a device"):
        files.read(Path("/dev/zero"))


def test_the_page_shows_scores_with_the_best_in_bold_and_what_is_open(demo):
    rows = runs("one", "fedavg", mean=0.5) + runs("one", "self-train", mean=0.4)
    rows += runs("one", "fedprox", mean=0.7, spread=0.01)
    text = page_of(board(demo, rows))
    assert "| FedProx | " in text
    assert "**70.00** ± 0.75 ▲" in text
    assert "**Not complete.** Methods without all their runs, by federation: two 2." in text
    assert "Finished: 1 of 2 federations. Open, and not judged: two." in text
    assert "no federation is finished yet" in page_of(board(demo, []))


def test_the_page_says_where_runs_end_before_they_have_learned(tmp_path):
    long = track_of(tmp_path, SUITE.replace("rounds = 2", "rounds = 20"))
    rows = [
        replace(each, best_round=19 if each.seed < 4 else 18)
        for pair in long.candidates
        for each in runs(*pair, mean=0.5)
    ]
    line = "| *best round in the last tenth* |"
    assert f"{line} 30% | 30% |" in tables.scores(board(long, rows))
    assert f"{line} 30% | – |" in tables.scores(board(long, [each for each in rows if each.data == "one"]))
    assert findings.too_short(board(long, rows)) == ""
    later = [replace(each, best_round=20) if each.data == "two" else each for each in rows]
    assert findings.too_short(board(long, later)).endswith(
        "what trains more in a round is favoured: two 100%."
    )


def test_the_page_counts_what_validation_chose_where_most_methods_draw_it(demo):
    rows = []
    for data, method in demo.candidates:
        settings = {"fedavg": "optimizer=sgd lr=0.1", "fedprox": "optimizer=adam lr=0.2 mu=1"}.get(
            method, "x=1"
        )
        rows += runs(data, method, mean=0.5, settings=settings)
        tried = [settings, settings.replace("sgd", "adam"), f"{settings}5", f"{settings}6", f"{settings}7"]
        rows += [
            row(data, method, 201, 0.5, TUNING, case=f"{data}-{method}-{place}", settings=each)
            for place, each in enumerate(tried)
        ]
    assert tables.choices(board(demo, rows)).splitlines()[2:] == [
        "| the smallest or largest `lr` tried | 80% | 2 of 2 | 2 of 2 |",
        "| `optimizer=adam` | 60% | 1 of 2 | 1 of 2 |",
        "| `optimizer=sgd` | 40% | 1 of 2 | 1 of 2 |",
    ]
    assert tables.choices(board(demo, [each for each in rows if each.data == "one"])).count("open") == 3


def test_a_page_of_own_tracks_names_their_files_and_says_why_one_federation_has_no_ranks(tmp_path):
    lines = SUITE.replace("demo/graphs", "mine").splitlines()
    found = track_of(tmp_path, "\n".join(line for line in lines if '"two"' not in line), "mine")
    path = tmp_path / "mine.toml"
    rows = [each for method in found.methods for each in runs("one", method, mean=0.5)]
    assert f"`fedmpi leaderboard run {path}` continues" in page_of(board(found, rows[:-1]))
    text = page_of(board(found, rows))
    assert f"`fedmpi leaderboard page --track {path}` writes this page" in text
    assert "Ranks need two federations and three methods" in text
    assert "| FedAvg | 50.00 | – |" in text and "average rank |" not in text.split("## How to read it")[0]


def test_own_tracks_are_those_whose_suites_are_there_and_the_earlier_ones_come_last():
    assert TRACKS[-2:] == EARLIER == ("graphs", "nodes")
    assert set(TRACKS[:-2]) <= {"graph-classification", "node-classification", "molecules", "links"}


def test_earlier_tracks_show_beside_the_others_what_they_did_not_tune():
    found = track(locations.find("leaderboard/graphs"))
    assert found.earlier and found.unranked == ("centralised", "scaffold", "fednova", "q-fedavg")
    text = earlier_pages([board(found, [])], "leaderboard.md")["leaderboard-earlier.md"]
    assert "| *SCAFFOLD* |" in text and "[today's](leaderboard.md)" in text


def test_a_track_may_lack_fedavg_but_has_one_known_metric(demo):
    found = board(demo, runs("one", "fedprox", mean=0.5))
    assert (found.tally("fedprox", ALONE), found.entry("one", "other").rows) == ((0, 0), ())
    with pytest.raises(BadInput, match="rows of the metric accuracy, other: a track has one"):
        board(demo, [*runs("one", "fedavg", mean=0.5), *runs("one", "fedprox", mean=0.5, metric="other")])


@pytest.mark.parametrize(
    "text", ['name = "other"', 'name = "demo/graphs-tuned"\n[case]\n[matrix]\nwinner = [1]']
)
def test_something_else_in_the_place_of_the_winners_is_refused(demo, text):
    demo.tuned_file.write_text(text)
    with pytest.raises(BadInput, match="not the winners of demo/graphs, which belong there"):
        stored(demo)


def test_labels_may_have_characters_that_names_of_cases_have_not(tmp_path):
    found = track_of(tmp_path, SUITE.replace('"one"', '"α = 1/2"').replace('"two"', '"t|o"'))
    settings = {label: found.candidates[pair][0].settings for label, pair in found.pairs.items()}
    found.tuned_file.write_text(tuned_suite(found, settings))
    assert {case.name for case in read(found.tuned_file).cases} == set(found.final_cases)
    assert "| t\\|o |" in page_of(board(found, runs("t|o", "fedavg", mean=0.5)))


def test_the_committed_pages_follow_from_the_committed_rows():
    found = [track(locations.find(f"leaderboard/{name}")) for name in TRACKS]
    places = [ROOT / ROWS / f"{each.name}.csv" for each in found]
    rows = [files.read(path) if path.exists() else [] for path in places]
    known = [files.read_constants(files.constants_beside(path)) for path in places]
    boards = list(map(board, found, rows, known))
    earlier = [each for each in boards if each.track.earlier]
    assert [len(each.constants) for each in earlier] == [8, 6]
    today = pages([each for each in boards if not each.track.earlier], "leaderboard.md")
    for path, text in (today | earlier_pages(earlier, "leaderboard.md")).items():
        assert (ROOT / "docs" / path).read_text() == text, "run: fedmpi leaderboard page"


def test_committed_rows_have_the_seconds_of_what_comes_before_round_1():
    """FedSage+ trains generators first, which takes many times FedAvg's whole run."""
    rows = files.read(ROOT / "results/reference/leaderboard/nodes.csv")
    for stage in ("tuning", "final"):
        seconds = {each.pair: each.cpu_seconds for each in rows if each.stage == stage}
        for data, method in seconds:
            if method == "fedsage-plus":
                assert seconds[data, method] > 5 * seconds[data, "fedavg"]
