"""`fedmpi compare` on runs that are judged by ROC-AUC or RMSE."""

import json

import pytest

from fedmpi.analysis.comparison.compare import too_bad
from fedmpi.metrics.metric import ACCURACY


@pytest.fixture
def suites(tmp_path, make_scored):
    """Return a function that records a suite of two seeds whose runs have these scores by round."""

    def make(folder, name, scores, **options):
        for seed in (1, 2):
            make_scored(tmp_path / folder / f"seed{seed}", name, scores, seed=seed, **options)
        return tmp_path / folder

    return make


def test_a_run_is_as_accurate_as_itself(fedmpi, suites):
    a = suites("a", "roc_auc", [0.6, 0.7])
    done = fedmpi("compare", a, a, "--fail-if-less-accurate", "1pt")
    assert done.returncode == 0, done.stderr
    assert "VALID: 2 pairs" in done.stdout
    assert "passed: test ROC-AUC, last round: +0.0000 (-0.01 allowed), 2 pairs" in done.stdout
    assert "test accuracy" not in done.stdout and "nan" not in done.stdout


def test_a_lower_roc_auc_is_worse_and_invalid_beyond_a_point(fedmpi, suites):
    a = suites("a", "roc_auc", [0.6, 0.9, 0.7], val=[0.8, 0.7, 0.6])
    b = suites("b", "roc_auc", [0.6, 0.9, 0.68])
    done = fedmpi("compare", a, b)
    assert "BBBP, fedavg: ROC-AUC 0.0200 below the reference (0.01 allowed)" in done.stdout
    assert "INVALID" not in fedmpi("compare", a, b, "--tolerance", "3%").stdout
    (found,) = json.loads(fedmpi("compare", b, a, "--json").stdout)
    assert found["valid"]
    figures = {each["figure"]: each["second"] for each in found["overall"]}
    assert (figures["test_roc_auc"], figures["test_prc_auc"]) == (0.7, 0.35)
    endings = ("best_by_validation", "as_published")
    assert [figures[f"test_roc_auc_{ending}"] for ending in endings] == [0.6, 0.9]


def test_a_higher_rmse_is_worse_and_invalid_beyond_a_percent(fedmpi, suites):
    a, b = suites("a", "rmse", [3.0, 2.0]), suites("b", "rmse", [3.0, 2.1])
    (found,) = json.loads(fedmpi("compare", a, b, "--json").stdout)
    assert found["cases"][0]["invalid"] == ["RMSE 0.1000 above the reference (1 % allowed)"]
    assert "INVALID" not in fedmpi("compare", b, a).stdout
    rmse = next(each for each in found["overall"] if each["figure"] == "test_rmse")
    assert (rmse["better"], rmse["verdict"]) == ("lower", "two pairs only")


@pytest.mark.parametrize(
    ("limit", "code", "line"),
    [
        ("0.2", 0, "passed: test RMSE, last round: +0.1000 (+0.2 allowed), 2 pairs"),
        ("0.05", 1, "FAILED: test RMSE, last round: +0.1000 (+0.05 allowed), 2 pairs"),
        ("4%", 1, "FAILED: test RMSE, last round: +0.1000 (+4 % allowed), 2 pairs"),
        ("6%", 0, "passed: test RMSE, last round: +0.1000 (+6 % allowed), 2 pairs"),
    ],
)
def test_a_limit_is_a_number_in_the_labels_unit_or_a_percentage(fedmpi, suites, limit, code, line):
    a, b = suites("a", "rmse", [2.0]), suites("b", "rmse", [2.1])
    done = fedmpi("compare", a, b, "--tolerance", "50%", "--fail-if-less-accurate", limit)
    assert done.returncode == code
    assert line in done.stdout


@pytest.mark.parametrize("option", ["--tolerance", "--fail-if-less-accurate"])
def test_rmse_has_no_points(fedmpi, suites, option):
    a = suites("a", "rmse", [2.0])
    done = fedmpi("compare", a, a, option, "1pt")
    assert done.returncode == 2
    assert f"{option} 1pt: RMSE has no points" in done.stderr and done.stderr.count("\n") == 1


def test_without_a_score_nothing_is_valid(fedmpi, suites):
    nothing = suites("b", "roc_auc", [float("nan")])
    done = fedmpi("compare", nothing, nothing, "--fail-if-less-accurate", "1pt")
    assert done.returncode == 1
    assert "no ROC-AUC of both sides, so none to judge by" in done.stdout
    assert too_bad(ACCURACY, None, 0.5, float("nan"))


def test_no_mean_is_taken_of_the_rmse_of_two_datasets(fedmpi, suites):
    for name, scores in (("a", [2.0]), ("b", [2.1])):
        suites(f"{name}/one", "rmse", scores)
        suites(f"{name}/two", "rmse", [50.0], settings={"dataset": {"name": "FreeSolv"}})
    done = fedmpi("compare", "a", "b", "--fail-if-less-accurate", "1%")
    assert done.returncode == 1
    assert "FAILED: BBBP, fedavg: test RMSE, last round: +0.1000 (+1 % allowed), 2 pairs" in done.stdout
    assert "passed: FreeSolv, fedavg: test RMSE, last round: +0.0000 (+1 % allowed)" in done.stdout
    assert "26.0" not in done.stdout
