"""fedmpi options and fedmpi new."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.refusals import refused

ROOT = Path(__file__).parents[2]

OWN = '''
from typing import Literal
from pydantic import Field
from fedmpi.algorithms.base import Algorithm, AlgorithmOptions

class DampedOptions(AlgorithmOptions):
    name: Literal["damped"] = "damped"
    damping: float = Field(0.5, gt=0, le=1)
    """Share of the mean update that is kept."""

class Damped(Algorithm):
    """FedAvg with a shorter step."""
    name = "damped"
    paper = "nobody, nowhere"
    Options = DampedOptions
'''


def test_the_page_of_settings_is_what_the_command_prints():
    # Not by the fixture, whose processes know the classes that other tests made.
    command = [sys.executable, "-m", "fedmpi", "options", "--markdown"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    page = (ROOT / "docs" / "settings.md").read_text()
    assert done.stdout == page, "run: fedmpi options --markdown > docs/settings.md"


@pytest.mark.parametrize(
    "arguments", [[], ["algorithm"], ["fedcch"], ["case"], ["dataset", "Cora"], ["objective", "fclg"]]
)
def test_80_columns_are_enough(fedmpi, monkeypatch, arguments):
    monkeypatch.setenv("COLUMNS", "80")
    done = fedmpi("options", *arguments, code=0)
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_a_name_shows_its_settings_as_a_suite_states_them_and_json_the_same(fedmpi):
    done = fedmpi("options", "algorithm", "fedprox")
    assert "algorithm.mu = 0.01\n    Number, at least 0. Weight of the proximal term" in done.stdout
    assert "Paper: Li et al., MLSys 2020" in done.stdout
    (axis,) = json.loads(fedmpi("options", "algorithm", "fedprox", "--json").stdout)
    (name,) = axis["names"]
    assert (axis["axis"], name["name"]) == ("algorithm", "fedprox")
    meaning = "Weight of the proximal term; 0.01 as GCFL."
    mu = {"type": "number", "values": "at least 0", "default": 0.01, "meaning": meaning}
    assert name["settings"] == [{"key": "algorithm.mu", **mu}]


def test_plugins_are_shown_too(plugged):
    done = plugged(OWN, "options", "damped")
    assert done.stdout.splitlines() == [
        "algorithm damped",
        "FedAvg with a shorter step.",
        "Paper: nobody, nowhere",
        "",
        "algorithm.damping = 0.5",
        "    Number, above 0, at most 1. Share of the mean update that is kept.",
        "",
    ]


def test_an_unknown_name_is_one_line_and_code_2(fedmpi):
    words = ('algorithm: there is no "fedprx"; did you mean "fedprox"?', "; own parts need --plugin)\n")
    refused(fedmpi("options", "algorithm", "fedprx"), *words)


def test_a_new_suite_runs_as_written_and_is_never_overwritten(fedmpi, tmp_path):
    fedmpi("new", "mine.toml", code=0)
    fedmpi("run", "mine.toml", code=0)
    records = sorted((tmp_path / "results" / "runs" / "mine").glob("*/run.h5"))
    names = ("fedavg", "fedprox", "self-train")
    assert [each.parent.name for each in records] == [f"seed{s}-{name}" for s in (1, 2) for name in names]
    (tmp_path / "mine.toml").write_text("mine")
    refused(fedmpi("new", "mine.toml"), "mine.toml: it exists; name another file\n")
    assert (tmp_path / "mine.toml").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine", "fedmpi: mine: a suite is a TOML file: name it mine.toml\n"),
        ("my suite.toml", "fedmpi: my suite.toml: name: letters, digits, . _ + = - and / between parts"),
        ("nowhere/mine.toml", "fedmpi: nowhere/mine.toml: cannot write it (No such file or directory)\n"),
    ],
)
def test_a_file_that_can_be_no_suite_is_refused(fedmpi, name, message):
    refused(fedmpi("new", name), message)


def test_a_key_shows_what_has_it(fedmpi):
    whole, last = fedmpi("options", "algorithm.mu"), fedmpi("options", "mu")
    assert whole.stdout == last.stdout
    named = [line for line in whole.stdout.splitlines() if line.startswith("algorithm ")]
    assert named == ["algorithm fedprox", "algorithm moon"]
    assert "algorithm.mu = 0.01" in whole.stdout
    assert fedmpi("options", "algorithm.fedprox").stdout == fedmpi("options", "algorithm", "fedprox").stdout
