"""`fedmpi plot` of suites and of runs, end to end on one process."""

import shutil
import subprocess
import sys

import pytest

from fedmpi.analysis import figures
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.registry.check import check_suite
from fedmpi.store.record import RunRecord

SUITE = """
name = "{name}"
[case]
dataset = {{ name = "synthetic", synthetic = {{ domains = 2, graphs = 40 }} }}
rounds = 3
[matrix]
algorithm = ["self-train", "fedavg"]
[figure]
kind = "{kind}"
"""

WITHOUT_TORCH = """
import sys
for name in ("torch", "mpi4py", "torch_geometric"):
    sys.modules[name] = None
sys.argv = ["fedmpi", *{arguments!r}]
from fedmpi.cli.main import main
main()
"""


@pytest.fixture
def suite(tmp_path):
    """Return a function that writes a suite of two short cases."""

    def write(name="tiny", kind="gains", more=""):
        path = tmp_path / f"{name}.toml"
        path.write_text(SUITE.format(name=name, kind=kind) + more)
        return path

    return write


def refused(done, *words):
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("fedmpi: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr


def set_status(folder, status):
    with RunRecord.reopen(folder) as record:
        record.finish(status)


def test_a_suite_is_run_and_drawn_and_then_only_drawn(fedmpi, suite, tmp_path):
    done = fedmpi("plot", suite(), "--workers", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 cases, 0 complete, 2 to run" in done.stdout
    image = tmp_path / "results" / "runs" / "tiny" / "figure.svg"
    drawn = image.read_bytes()
    assert b"<svg" in drawn
    again = fedmpi("plot", suite())
    assert again.returncode == 0
    assert "2 cases, 2 complete, 0 to run" in again.stdout
    assert image.read_bytes() == drawn


def test_finished_runs_of_another_suite_are_reused(fedmpi, suite, tmp_path):
    assert fedmpi("run", suite("first"), "--out", "first").returncode == 0
    options = ["first", "--out", "second", "--image", "a.png"]
    done = fedmpi("plot", suite("second"), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 cases are reused from finished runs" in done.stdout
    assert "2 cases, 2 complete, 0 to run" in done.stdout
    assert not (tmp_path / "second").exists()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_other_seeds_unfinished_runs_and_other_versions_are_not_reused(fedmpi, suite, tmp_path, monkeypatch):
    assert fedmpi("run", suite("first"), "--out", "first").returncode == 0
    reuse = ["first", "--budget", "0"]
    other = fedmpi("plot", suite("second"), *reuse, "--set", "seed=7")
    assert "0 cases are reused" in other.stdout
    set_status(tmp_path / "first" / "fedavg", "interrupted")
    shutil.rmtree(tmp_path / "first" / "self-train")
    with monkeypatch.context() as patch:
        patch.setattr("fedmpi.store.record.NUMERICS_VERSION", 0)
        assert fedmpi("run", suite("first"), "--out", "first", "--case", "self-train").returncode == 0
    assert "0 cases are reused" in fedmpi("plot", suite("second"), *reuse).stdout


def test_what_is_missing_is_said_and_drawn_around(fedmpi, suite, tmp_path):
    path = suite(kind="losses")
    assert fedmpi("run", path, "--out", "runs", "--case", "fedavg").returncode == 0
    done = fedmpi("plot", path, "--out", "runs", "--budget", "0")
    assert done.returncode == 75
    assert "Drawn from 1 of 2 runs; not complete: self-train." in done.stdout
    assert (tmp_path / "runs" / "figure.svg").exists()


def test_too_little_for_a_picture_is_one_line_and_the_sweeps_code(fedmpi, suite, tmp_path):
    done = fedmpi("plot", suite(), "--out", "runs", "--budget", "0")
    assert done.returncode == 75
    assert done.stderr == "fedmpi: no picture from 0 of 2 runs yet: there is no complete run to draw\n"
    assert not (tmp_path / "runs" / "figure.svg").exists()


@pytest.mark.parametrize(
    ("kind", "more", "options", "words"),
    [
        ("gians", "", [], ['tiny.toml: figure.kind: there is no kind "gians"', 'did you mean "gains"?']),
        ("gains", "rul = 1", [], ['tiny.toml: figure.rul: unknown option; did you mean "rule"?']),
        ("gains", 'by = "size"', [], ["figure.by: input should be 'algorithm' or 'dataset' (got 'size')"]),
        ("gains", "", ["--image", "a.jpg"], ["--image a.jpg: the name must end in one of .svg, .pdf, .png"]),
        ("gains", "", ["nowhere"], ["nowhere: no such file or folder"]),
        ("gains", "", ["--image", "/proc/none/a.svg"], ["cannot write in /proc/none"]),
    ],
)
def test_mistakes_are_found_before_anything_runs(fedmpi, suite, tmp_path, kind, more, options, words):
    refused(fedmpi("plot", suite(kind=kind, more=more), *options), *words)
    assert not (tmp_path / "results").exists()


def test_a_suite_without_a_figure_is_refused(fedmpi, tiny_suite):
    refused(fedmpi("plot", tiny_suite), "no table [figure]", "fedmpi plot")


def test_plot_draws_finished_runs_without_torch_and_mpi(fedmpi, suite, tmp_path):
    assert fedmpi("run", suite(), "--out", "runs").returncode == 0
    code = WITHOUT_TORCH.format(arguments=["plot", "losses", "runs", "--option", "field=train_loss"])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Picture: losses.svg\n"
    assert b"<svg" in (tmp_path / "losses.svg").read_bytes()


def test_plot_leaves_unfinished_runs_out_and_names_them(fedmpi, suite, tmp_path):
    assert fedmpi("run", suite(), "--out", "runs").returncode == 0
    set_status(tmp_path / "runs" / "fedavg", "diverged")
    done = fedmpi("plot", "losses", "runs", "--image", "a.pdf")
    refused(done, "runs/fedavg: diverged, 3 rounds, left out")
    assert "Drawn from 1 of 2 runs; not complete: fedavg." in done.stdout
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    refused(fedmpi("plot", "losses", "runs/fedavg"), "runs/fedavg: diverged, 3 rounds, left out")


def test_wrong_kinds_and_options_of_plot(fedmpi, suite):
    refused(fedmpi("plot", "gain", "runs"), "gain: no kind of figure and no suite", 'did you mean "gains"?')
    refused(fedmpi("plot", "gains", "runs", "--workers", 2), "gains is drawn from finished runs: --set")
    refused(fedmpi("plot", "gains"), "gains is drawn from finished runs: fedmpi plot gains RUNS")
    refused(fedmpi("plot", suite(), "--option", "log=true"), "--option is for a kind of figure")
    refused(fedmpi("plot", "losses", "runs", "--option", "log"), "--option log: write it as name=value")
    refused(
        fedmpi("plot", "losses", "runs", "--option", "lag=true"),
        '--option lag: unknown option; did you mean "log"',
    )
    refused(fedmpi("plot", "losses", "runs"), "runs: no such file or folder")


def test_every_bundled_figure_is_right():
    drawn = [suite for suite in map(read, map(locations.find, locations.bundled())) if suite.figure]
    assert [suite.name for suite in drawn if suite.name.startswith("gcfl/figure")] == [
        f"gcfl/figure{number}" for number in (1, 2, 4, 5, 6, 7, 8)
    ]
    for suite in drawn:
        table = dict(suite.figure)
        figures.check_options(figures.load(table.pop("kind")), table, suite.name)


def identities(name):
    """Return the configurations of a suite's cases without what only names them."""
    configs = [item.case.config() for item in check_suite(read(locations.find(name)))]
    return [{**config, "suite": "", "name": ""} for config in configs]


@pytest.mark.parametrize(
    ("number", "shared", "all_"), [(1, 2, 2), (2, 2, 50), (4, 8, 8), (6, 50, 100), (7, 100, 200), (8, 40, 60)]
)
def test_cells_that_a_table_has_too_have_its_very_configuration(number, shared, all_):
    tables = [*identities("gcfl/table3"), *identities("gcfl/table4")]
    cases = identities(f"gcfl/figure{number}")
    assert len(cases) == all_
    assert sum(case in tables for case in cases) == shared


def test_figure_5_trains_proteins_with_six_others_on_degrees():
    cases = identities("gcfl/figure5")
    assert len(cases) == 5 * 7
    assert {case["dataset"]["features"] for case in cases} == {"degree"}
    others = ("DD", "ENZYMES", "MUTAG", "NCI1", "PTC_MR", "COLLAB")
    names = ["PROTEINS", *(f"PROTEINS+{other}" for other in others)]
    assert [case["dataset"]["name"] for case in cases[:7]] == names
    assert [case["algorithm"]["name"] for case in cases[:7]] == ["self-train", *["fedavg"] * 6]
