"""`fedmpi plot` of suites and of runs, end to end on one process."""

import shutil
from functools import cache

import pytest

from fedmpi.analysis import figures
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.registry.check import check_suite
from fedmpi.store.record import RunRecord
from tests.cli.refusals import refused
from tests.test_layers import without_torch

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


@pytest.fixture
def suite(tmp_path):
    """Return a function that writes a suite of two short cases."""

    def write(name="tiny", kind="gains", more=""):
        path = tmp_path / f"{name}.toml"
        path.write_text(SUITE.format(name=name, kind=kind) + more)
        return path

    return write


def set_status(folder, status):
    with RunRecord.reopen(folder) as record:
        record.finish(status)


@pytest.mark.long
def test_a_suite_is_run_and_drawn_and_then_only_drawn(fedmpi, suite, tmp_path):
    done = fedmpi("plot", suite(), "--workers", 2, code=0)
    assert "2 cases, 0 complete, 2 to run" in done.stdout
    image = tmp_path / "results" / "runs" / "tiny" / "figure.svg"
    drawn = image.read_bytes()
    assert b"<svg" in drawn
    again = fedmpi("plot", suite(), code=0)
    assert "2 cases, 2 complete, 0 to run" in again.stdout
    assert image.read_bytes() == drawn


def test_finished_runs_of_the_same_computation_are_reused(fedmpi, suite, tmp_path, monkeypatch):
    fedmpi("run", suite("first"), "--out", "first", code=0)
    done = fedmpi("plot", suite("second"), "first", "--out", "second", "--image", "a.png", code=0)
    assert "2 cases are reused from finished runs" in done.stdout
    assert "2 cases, 2 complete, 0 to run" in done.stdout
    assert not (tmp_path / "second").exists()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    reuse = ["first", "--budget", "0"]
    other = fedmpi("plot", suite("second"), *reuse, "--set", "seed=7")
    assert "0 cases are reused" in other.stdout
    set_status(tmp_path / "first" / "fedavg", "interrupted")
    shutil.rmtree(tmp_path / "first" / "self-train")
    with monkeypatch.context() as patch:
        patch.setattr("fedmpi.store.record.NUMERICS_VERSION", 0)
        fedmpi("run", suite("first"), "--out", "first", "--case", "self-train", code=0)
    assert "0 cases are reused" in fedmpi("plot", suite("second"), *reuse).stdout


def test_what_is_missing_is_said_and_drawn_around_unless_it_is_too_much(fedmpi, suite, tmp_path):
    path, image = suite(kind="losses"), tmp_path / "runs" / "figure.svg"
    done = fedmpi("plot", path, "--out", "runs", "--budget", "0", code=75)
    assert done.stderr == "fedmpi: no picture from 0 of 2 runs yet: there is no complete run to draw\n"
    assert not image.exists()
    fedmpi("run", path, "--out", "runs", "--case", "fedavg", code=0)
    done = fedmpi("plot", path, "--out", "runs", "--budget", "0", code=75)
    assert "Drawn from 1 of 2 runs; not complete: self-train." in done.stdout
    assert image.exists()


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


def test_plot_draws_finished_runs_without_torch_and_mpi_and_names_the_others(fedmpi, suite, tmp_path):
    fedmpi("run", suite(), "--out", "runs", code=0)
    done = without_torch(tmp_path, "plot losses runs --option field=train_loss")
    assert done.stdout == "Picture: losses.svg\n"
    assert b"<svg" in (tmp_path / "losses.svg").read_bytes()
    set_status(tmp_path / "runs" / "fedavg", "diverged")
    done = fedmpi("plot", "losses", "runs", "--image", "a.pdf")
    refused(done, "runs/fedavg: diverged, 3 rounds, left out")
    assert "Drawn from 1 of 2 runs; not complete: fedavg." in done.stdout
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    refused(fedmpi("plot", "losses", "runs/fedavg"), "runs/fedavg: diverged, 3 rounds, left out")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gain", "runs"], ["gain: no kind of figure and no suite", 'did you mean "gains"?']),
        (["gains", "runs", "--workers", 2], ["gains is drawn from finished runs: --set"]),
        (["gains"], ["gains is drawn from finished runs: fedmpi plot gains RUNS"]),
        (["tiny.toml"], ["no table [figure]", "fedmpi plot"]),
        (["tiny.toml", "--option", "band=true"], ["--option is for a kind of figure"]),
        (["losses", "runs", "--option", "band"], ["--option band: write it as name=value"]),
        (["losses", "runs", "--option", "bend=true"], ['--option bend: unknown option; did you mean "band"']),
        (["losses", "runs"], ["runs: no such file or folder"]),
    ],
)
@pytest.mark.usefixtures("tiny_suite")
def test_wrong_kinds_and_options_of_plot(fedmpi, arguments, words):
    refused(fedmpi("plot", *arguments), *words)


def test_every_bundled_figure_is_right():
    drawn = [suite for suite in map(read, map(locations.find, locations.bundled())) if suite.figure]
    names = [suite.name for suite in drawn if suite.name.startswith("gcfl/figure")]
    assert names == [f"gcfl/figure{number}" for number in (1, 2, 4, 5, 6, 7, 8)]
    for suite in drawn:
        table = dict(suite.figure)
        figures.check_options(figures.load(table.pop("kind")), table, suite.name)


@cache
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
