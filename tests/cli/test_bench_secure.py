"""``fedmpi bench secure``: the three protocols, their figure, and Flower beside them."""

import os
import sys

import pytest

from tests.cli.refusals import refused
from tests.cli.test_bench import COUNTS, as_json

TINY = ["--parameters", "100,200", "--clients", "8,12,40", "--dropouts", "0,30"]


def check_totals(report):
    """A report has every setting, and its phases make up the total."""
    assert {each["protocol"] for each in report["measurements"]} == {"secagg", "secagg+", "lightsecagg"}
    assert len(report["measurements"]) == 3 * 2 * 3 * 2
    for figures in (each["figures"] for each in report["measurements"]):
        parts = [figures[f"{name}_seconds"]["samples"] for name in ("offline", "upload", "recovery")]
        totals = [sum(turn) for turn in zip(*parts, strict=True)]
        assert figures["total_seconds"]["samples"] == pytest.approx(totals)


def check_fits(report):
    """Costs of every protocol grow as they must."""
    rings = "secagg+ is secagg for 8, 12 clients at 0 % dropouts; 8, 12, 40 cl"
    assert report["statements"][0].startswith(rings)
    found = {(each["protocol"], each["quantity"]): each for each in report["results"]["fits"]}
    assert len(found) == 12
    growth = found["secagg", "offline bytes of a client"]["exponents"]
    assert growth["N"][0] == pytest.approx(1, abs=0.1)
    assert growth["d"][0] == pytest.approx(0, abs=1e-6)
    assert found["secagg", "online bytes of a client"]["formula_error"] < 0.01


def test_a_report_is_printed_fitted_and_drawn(fedmpi, tmp_path):
    options = ["--repetitions", "2", "--warmup", "0", "--json", "--image", tmp_path / "secure.svg"]
    report = as_json(fedmpi("bench", "secure", *TINY, *options))
    check_totals(report)
    check_fits(report)
    picture = (tmp_path / "secure.svg").read_text()
    assert "<!-- 200 parameters, 30 % dropouts" in picture or "<!-- 200, 30 %" in picture
    assert "LightSecAgg, recovery" in picture


def test_a_part_as_a_table(fedmpi):
    options = ["--protocols", "lightsecagg", "--parameters", "100", "--clients", "5", "--dropouts", "10"]
    done = fedmpi("bench", "secure", *options, *COUNTS, code=0)
    assert "server_unmask_seconds" in done.stdout
    assert "secagg+" not in done.stdout


def test_a_peer_without_flower_ends_in_one_line(fedmpi):
    options = ["--parameters", "100", "--clients", "4", "--dropouts", "0"]
    done = fedmpi("bench", "secure", *options, "--peer", sys.executable, code=1)
    assert done.stderr.endswith("the peer has ended: ModuleNotFoundError: No module named 'flwr'\n")


if "FEDMPI_FLOWER" in os.environ:  # a Python with Flower, which is no dependency: bench/secure/README.md

    def test_flower_has_the_same_updates_and_mean(fedmpi):
        options = ["--parameters", "1000", "--clients", "5", "--dropouts", "0,40", *COUNTS]
        peer = ["--peer", os.environ["FEDMPI_FLOWER"]]
        report = as_json(fedmpi("bench", "secure", *options, *peer, "--json"))
        programs = [each["program"] for each in report["measurements"]]
        assert programs == ["peer", "fedmpi", "peer / fedmpi"] * 2
        assert all(each["client_ratio"]["median"] > 0 for each in report["results"].values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--protocols", "secag"], 'did you mean "secagg"?'),
        (["--clients", "3"], "--clients 3: give whole numbers from 4 to 2,000, such as"),
        (["--dropouts", "71"], "--dropouts 71: give whole numbers from 0 to 70"),
        (["--parameters", "0"], "--parameters 0: give whole numbers from 1 to 100,000,000"),
        (["--peer", "missing"], "--peer missing: name a Python that has Flower"),
        (["--image", "figure.gif"], "--image figure.gif: the name must end in one of"),
    ],
)
def test_mistakes_are_one_line(fedmpi, options, message):
    refused(fedmpi("bench", "secure", *options), message)
