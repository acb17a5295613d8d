"""`fedmpi compare` on made-up records."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fedmpi.analysis.comparison.outcomes import read_side
from fedmpi.analysis.comparison.pairs import pair

GOOD = [[0.5, 0.6], [0.7, 0.8]]
WORSE = [[0.5, 0.6], [0.65, 0.75]]
ALL = "accuracy and speed and work, 2 of 2 pairs"
SELECTION = "other selection of rounds and clients to evaluate"


@pytest.fixture
def suites(tmp_path, make_run):
    """Return a function that records a suite of two seeds, or of others, below a name."""

    def make(name, accuracy=GOOD, seeds=(1, 2), **options):
        for seed in seeds:
            make_run(tmp_path / name / f"seed{seed}", accuracy, seed=seed, **options)
        return tmp_path / name

    return make


def figures(done):
    (found,) = json.loads(done.stdout)
    return {each["figure"]: each for each in found["overall"]}


def test_ratios_are_paired_by_case_and_seed(fedmpi, suites):
    seeds = (1, 2, 3)
    done = fedmpi("compare", suites("a", seeds=seeds), suites("b", seeds=seeds, slowness=1.5), "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert found["valid"] and len(found["cases"][0]["pairs"]) == 3
    speed, accuracy = (figures(done)[name] for name in ("round_seconds_median", "test_accuracy"))
    assert (speed["first"], speed["second"], speed["better"]) == (1.5, 2.25, "lower")
    assert (speed["ratio"], speed["verdict"]) == (pytest.approx(1.5), "worse")
    assert (accuracy["difference"], accuracy["verdict"]) == (0.0, "the same")


def datasets(suites, name, **slowness):
    """Record three seeds of each dataset, slower by these factors."""
    for dataset, factor in slowness.items():
        settings = {"dataset": {"name": dataset}}
        folder = suites(f"{name}/{dataset}", seeds=(1, 2, 3), settings=settings, slowness=factor)
    return folder.parent


def test_over_several_datasets_each_counts_once_and_two_decide_nothing(fedmpi, suites):
    a = datasets(suites, "a", MUTAG=1.0, PROTEINS=1.0, DD=1.0)
    done = fedmpi("compare", a, datasets(suites, "b", MUTAG=1.3, PROTEINS=3.2, DD=2.0), "--json")
    speed = figures(done)["round_seconds_median"]
    assert (speed["unit"], speed["count"], speed["pairs"]) == ("dataset", 3, 9)
    assert speed["ratio"] == pytest.approx((1.3 * 3.2 * 2.0) ** (1 / 3))
    assert speed["low"] < 1 < speed["high"] and speed["verdict"] == "undecided"
    (first, *_) = json.loads(done.stdout)[0]["cases"]
    alone = next(each for each in first["figures"] if each["figure"] == "round_seconds_median")
    assert (alone["unit"], alone["count"], alone["verdict"]) == ("pair", 3, "worse")
    shutil.rmtree(a / "PROTEINS")
    shown = fedmpi("compare", a, "b").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("seconds per round, median")]
    assert line.split()[-5:] == ["-", "2", "two", "datasets", "only"]
    assert "Means over datasets, each one the mean of its pairs" in shown


def test_runs_of_several_sessions_count_once_a_session(fedmpi, suites, tmp_path):
    for session, slowness in enumerate((1.3, 1.25, 0.9)):
        suites(f"a/{session}")
        suites(f"b/{session}", slowness=slowness)
    done = fedmpi("compare", tmp_path / "a", tmp_path / "b", "--json")
    speed = figures(done)["round_seconds_median"]
    assert (speed["unit"], speed["count"], speed["pairs"]) == ("session", 3, 6)
    assert speed["verdict"] == "undecided"


def test_scores_have_the_interval_of_their_difference(fedmpi, suites):
    a, b = suites("a", seeds=(1, 2)), suites("b", WORSE, seeds=(1, 2))
    suites("a", seeds=(3,))
    suites("b", [[0.5, 0.6], [0.68, 0.78]], seeds=(3,))
    done = fedmpi("compare", a, b, "--tolerance", "10pt")
    # differences of -5, -5 and -2 points: mean -4, standard deviation 1.732, t of 2 degrees 4.303
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("test accuracy %, last round")]
    assert "-4.00  -8.30 to +0.30" in line and line.endswith("undecided")


def test_a_value_too_small_for_its_digits_is_shown(fedmpi, suites):
    done = fedmpi("compare", suites("a", slowness=1e-3), suites("b", slowness=2e-3))
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("seconds evaluating")]
    assert line.split()[3:6] == ["0.001", "0.002", "2.000"]


def test_a_less_accurate_system_is_invalid_and_its_speed_is_not_given(fedmpi, suites):
    done = fedmpi("compare", suites("a"), suites("b", WORSE, slowness=0.5))
    assert "INVALID: 1 of 1 cases" in done.stdout
    assert "accuracy 5.00 points below the reference (1 allowed)" in done.stdout
    assert "seconds per round" not in done.stdout and "test accuracy %" in done.stdout
    valid = fedmpi("compare", suites("c"), suites("d", WORSE), "--tolerance", "5pt").stdout
    assert valid.index("VALID: 2 pairs") < valid.index("seconds per round") and "INVALID" not in valid


def test_a_run_is_valid_once_it_reached_the_target(fedmpi, suites):
    a, b = suites("a"), suites("b", WORSE, slowness=2.0)
    found = figures(fedmpi("compare", a, b, "--target", "0.69", "--json"))
    assert found["seconds_to_target"]["ratio"] == pytest.approx(2.0)
    done = fedmpi("compare", a, b, "--target", "0.72")
    assert "2 of 2 runs never reached the target 0.72" in done.stdout


@pytest.mark.parametrize(
    ("accuracy", "options", "code", "line"),
    [
        (GOOD, "slower 60%", 0, "seconds per round, median: +50.0 % (60 % allowed)"),
        (GOOD, "slower 10%", 1, "seconds per round, median: +50.0 % (10 % allowed)"),
        (GOOD, "less-accurate 1pt", 0, "test accuracy %, last round: +0.00 points (-1 allowed)"),
        # 0.70 against 0.75
        (WORSE, "less-accurate 5%", 1, "test accuracy %, last round: -5.00 points (-5 % allowed)"),
        (WORSE, "less-accurate 2pt", 1, "test accuracy %, last round: -5.00 points (-2 allowed)"),
    ],
)
def test_limits_decide_the_exit_code(fedmpi, suites, accuracy, options, code, line):
    limits = ("--tolerance", "10pt", *f"--fail-if-{options}".split())
    done = fedmpi("compare", suites("a"), suites("b", accuracy, slowness=1.5), *limits)
    assert done.returncode == code
    assert f"{('passed', 'FAILED')[code]}: {line}, 2 pairs" in done.stdout


@pytest.mark.parametrize(
    ("change", "words", "figure"),
    [
        ({"numerics": 1}, f"{ALL}: other numerics version", "test_accuracy"),
        ({"ranks": 1}, "speed, 2 of 2 pairs: other number of ranks (2 -> 1)", "round_seconds_median"),
        ({"settings": {"reduction": {"name": "float32"}}}, f"{ALL}: other reduction", "test_accuracy"),
        ({"settings": {"evaluation": {"every": 5}}}, f"{ALL}: {SELECTION}", "test_accuracy"),
    ],
)
def test_what_is_not_like_for_like_is_flagged_and_counts_for_no_check(fedmpi, suites, change, words, figure):
    usual = {"settings": {"reduction": {"name": "exact"}, "evaluation": {"every": 1}}}
    changed = {**usual, **change}
    changed["settings"] = {**usual["settings"], **change.get("settings", {})}
    a, b = suites("a", **usual), suites("b", **changed)
    assert f"flagged: {words}" in fedmpi("compare", a, b).stdout
    assert figures(fedmpi("compare", a, b, "--json"))[figure]["verdict"] == "not like for like"
    check = fedmpi("compare", a, b, "--fail-if-slower", "500%")
    assert check.returncode == 1
    advice = " (--any-ranks allows other numbers of ranks)" * ("ranks" in change)
    assert f"no valid pair that is like for like{advice}, so the check cannot pass" in check.stdout


def test_other_numbers_of_ranks_count_where_they_are_allowed_or_spoil_nothing(fedmpi, suites):
    a, b = suites("a"), suites("b", ranks=1, slowness=1.5)
    done = fedmpi("compare", a, b, "--any-ranks", "--fail-if-slower", "60%")
    assert done.returncode == 0
    assert "Differs in 2 of 2 pairs: ranks: 2 -> 1" in done.stdout
    assert "passed: seconds per round, median: +50.0 % (60 % allowed), 2 pairs" in done.stdout
    assert "like for like" not in done.stdout
    found = figures(fedmpi("compare", a, b, "--json"))
    work = ("model_gflop", "client_megabytes", "virtual_seconds")
    assert {found[name]["verdict"] for name in work} == {"the same"}
    assert found["collective_megabytes"]["verdict"] == "not like for like"


def test_a_run_and_its_copy_are_said_to_be_one(fedmpi, tmp_path, suites):
    a = suites("a", provenance={"host": "node1"})
    shutil.copytree(a, tmp_path / "b")
    done = fedmpi("compare", a, tmp_path / "b")
    assert "2 of 2 pairs are a run and itself, or its copy, which compares nothing" in done.stdout
    shutil.copytree(a / "seed1", a / "seed3")
    done = fedmpi("compare", a, suites("c", provenance={"host": "node2"}))
    assert f"{a / 'seed3'}: a copy of {a / 'seed1'}, left out" in done.stderr
    assert "VALID: 2 pairs" in done.stdout and "or its copy" not in done.stdout


def test_a_mark_in_the_table_of_cases_is_explained(fedmpi, suites):
    for name in ("fedavg", "gcfl"):
        suites(f"a/{name}", settings={"algorithm": name})
        b = suites(f"b/{name}", settings={"algorithm": name}, ranks=1).parent
    done = fedmpi("compare", b.parent / "a", b)
    assert "1.000*" in done.stdout and "*: not like for like, see above" in done.stdout
    assert "*" not in fedmpi("compare", b.parent / "a", b, "--any-ranks").stdout


@pytest.mark.parametrize("name", ["dataset_digests", "train_index"])
def test_other_data_are_refused(fedmpi, suites, name):
    values = {"dataset_digests": np.array(["PROTEINS 1"]), "train_index": np.array([1, 2])}
    other = {**values, name: values[name][::-1] if name == "train_index" else np.array(["PROTEINS 2"])}
    done = fedmpi("compare", suites("a", partition=values), suites("b", partition=other))
    assert "Not like for like, refused, 2 of 2 pairs" in done.stdout
    assert "INVALID: 1 of 1 cases (0 valid); no speed is given" in done.stdout
    assert "no pair is like for like" in done.stdout
    assert "B / A" not in done.stdout.replace("s/round B / A", "")


def test_unfinished_and_unpaired_runs_are_named_and_change_the_exit_code(fedmpi, suites, make_run, tmp_path):
    a, b = suites("a"), suites("b")
    make_run(a / "seed3", GOOD, seed=3)
    make_run(b / "seed4", GOOD, seed=3, status="interrupted")
    make_run(b / "seed5", GOOD, seed=5)
    done = fedmpi("compare", a, b, tmp_path / "none")
    assert done.returncode == 2
    assert f"fedmpi: {b / 'seed4'}: interrupted, so not compared: made up" in done.stderr
    assert f"fedmpi: {b / 'seed5'}: no counterpart in {a}" in done.stderr
    assert "none: no such file or folder" in done.stderr
    assert "INVALID: 1 of 1 cases" in done.stdout and "1 of 3 runs are not complete" in done.stdout


def test_algorithms_are_paired_where_all_else_is_equal(tmp_path, suites):
    a = suites("a")
    b = suites("b", settings={"algorithm": "gcfl"})
    for number, folder in enumerate(sorted(b.iterdir())):
        folder.rename(b / f"other-name-{number}")
    left = []
    pairs, unpaired = pair(read_side(a, None, left), read_side(b, None, left))
    assert [(each.first.config["seed"], each.second.config["seed"]) for each in pairs] == [(1, 1), (2, 2)]
    assert pairs[0].case == ("PROTEINS", "fedavg -> gcfl")
    assert not pairs[0].reasons and unpaired == left == []


@pytest.fixture
def sweep(tmp_path, make_run):
    """Return a folder of three algorithms and two kernels with seeds 1 and 2; FedProx with seed 1 only."""
    for seed in (1, 2):
        for algorithm in ("fedprox", "fedavg", "krum")[seed - 1 :]:
            for kernels in ("csr", "compiled"):
                settings = {"algorithm": {"name": algorithm}, "kernels": kernels}
                accuracy = [[0.5, 0.6], [0.7, 0.8 + (algorithm == "krum") * seed / 100]]
                slow = 2.0 if kernels == "csr" else 1.0
                name = f"{algorithm}-{kernels}-{seed}"
                make_run(tmp_path / "sweep" / name, accuracy, seed=seed, settings=settings, slowness=slow)
    return tmp_path / "sweep"


def test_algorithms_of_one_folder_are_paired_by_seed_and_all_else(fedmpi, sweep):
    done = fedmpi("compare", sweep, "--by", "algorithm", "--json")
    found = {each["second"]: each for each in json.loads(done.stdout)}
    assert {each["first"] for each in found.values()} == {"algorithm fedavg"}
    pairs = found["algorithm krum"]["cases"][0]["pairs"]
    names = [(Path(pair["first"]).name, Path(pair["second"]).name) for pair in pairs]
    ends = ("compiled-1", "compiled-2", "csr-1", "csr-2")
    assert sorted(names) == [(f"fedavg-{end}", f"krum-{end}") for end in ends]
    (gap,) = [each for each in found["algorithm krum"]["overall"] if each["figure"] == "test_accuracy"]
    assert gap["difference"] == pytest.approx(0.0075)  # 0.5, 0.5, 1.0 and 1.0 points
    assert gap["verdict"] == "better"
    assert len(found["algorithm fedprox"]["cases"][0]["pairs"]) == 2
    assert done.returncode == 2 and "fedavg-csr-2: no counterpart in algorithm fedprox" in done.stderr


def test_any_setting_may_be_compared_over_a_reference_that_is_asked_for(fedmpi, sweep):
    done = fedmpi("compare", sweep, "--by", "kernels", "--reference", "compiled", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert (found["first"], found["second"]) == ("kernels compiled", "kernels csr")
    (speed,) = [each for each in found["overall"] if each["figure"] == "round_seconds_median"]
    assert (speed["ratio"], speed["pairs"], speed["verdict"]) == (pytest.approx(2.0), 5, "worse")


def test_an_axis_that_some_do_not_have_is_compared_over_none_and_work_is_given_in_any_case(
    fedmpi, tmp_path, make_run
):
    kinds = {"a": {"name": "top-k", "share": 0.01}, "b": {"name": "top-k", "share": 0.1}, "c": None}
    for name, kind in kinds.items():
        settings, scores = ({}, GOOD) if kind is None else ({"compression": kind}, WORSE)
        for seed in (1, 2):
            make_run(tmp_path / "runs" / f"{name}{seed}", scores, seed=seed, settings=settings)
    found = json.loads(fedmpi("compare", tmp_path / "runs", "--by", "compression", "--json").stdout)
    assert {each["first"] for each in found} == {"compression none"}
    assert [each["second"] for each in found] == [f"compression top-k (share {k})" for k in (0.01, 0.1)]
    (case,) = found[0]["cases"]
    assert case["pairs"][0]["differs"] == ["compression: none -> top-k"] and case["invalid"]
    ratios = {each["figure"]: each["ratio"] for each in found[0]["overall"]}
    assert ratios["client_megabytes_up"] == 1.0 and "total_seconds" not in ratios


def test_options_of_one_algorithm_are_values_of_their_own(fedmpi, tmp_path, make_run):
    for mu in (0.1, 0.01):
        for seed in (1, 2):
            settings = {"algorithm": {"name": "fedprox", "mu": mu}}
            make_run(tmp_path / "runs" / f"{mu}-{seed}", GOOD, seed=seed, settings=settings)
    for axis, label in (("algorithm", "algorithm fedprox (mu 0.1)"), ("algorithm.mu", "algorithm.mu 0.1")):
        (found,) = json.loads(fedmpi("compare", tmp_path / "runs", "--by", axis, "--json").stdout)
        assert label in (found["first"], found["second"])
        assert len(found["cases"][0]["pairs"]) == 2
        assert not any(pair["not_like_for_like"] for pair in found["cases"][0]["pairs"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("a", "name two runs, suites or folders, or more"),
        ("a b --fail-if-slower 10", "--fail-if-slower 10: give a percentage, such as 10%"),
        ("a b --fail-if-less-accurate 1x", "give points such as 1pt, a percentage such as 1%, or"),
        ("a b --target 70", "--target 70.0: accuracy lies between 0 and 1"),
        ("a --identical", "compare --identical: name two runs"),
        ("a --by model", "--by model: not two values of it in these runs (not set)"),
        ("a c --by algorithm --reference krum", "--reference krum: the runs have fedavg; gcfl"),
        ("a --reference krum", "or one and --by SETTING"),
    ],
)
def test_mistakes(fedmpi, suites, arguments, words):
    suites("a")
    suites("b")
    suites("c", settings={"algorithm": "gcfl"})
    done = fedmpi("compare", *arguments.split())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr


@pytest.mark.parametrize(
    ("columns", "headings", "left_out"),
    [
        ("80", "figure A B B / A 95 % interval B is", "Left out: better, B - A, pairs;"),
        ("120", "figure better A B B / A B - A 95 % interval pairs B is", ""),
    ],
)
def test_narrow_terminals_keep_the_interval(fedmpi, suites, monkeypatch, columns, headings, left_out):
    monkeypatch.setenv("COLUMNS", columns)
    seeds = (1, 2, 3)
    shown = fedmpi("compare", suites("a", seeds=seeds), suites("b", seeds=seeds, slowness=1.5)).stdout
    assert [" ".join(line.split()) for line in shown.splitlines() if line.startswith("figure")] == [headings]
    assert left_out in shown
    assert max(map(len, shown[shown.index("figure") :].splitlines())) <= int(columns)
