"""What a plug-in file may define, and what of it belongs to a run."""

import gc
import hashlib
import sys

import pytest

from fedmpi.config.suite import CaseSettings, read
from fedmpi.errors import BadInput
from fedmpi.registry.algorithms import ALGORITHMS
from fedmpi.registry.check import build, check_suite
from fedmpi.registry.kinds import load_plugin

HEAD = "import os, sys\nfrom fedmpi.algorithms.base import Algorithm\n"


@pytest.fixture
def plugin(tmp_path):
    """Return a function that writes a plug-in file and loads it; what it defines is gone afterwards."""
    path = tmp_path / "odd.py"

    def load(text):
        sys.modules.pop("fedmpi_plugin_odd", None)
        gc.collect()
        path.write_text(HEAD + text)
        load_plugin(path)

    yield load
    sys.modules.pop("fedmpi_plugin_odd", None)
    gc.collect()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class Odd(Algorithm):\n    name = 5", "class Odd: name = 5: a name is text"),
        ("class Odd(Algorithm):\n    name = '../odd'", "name = '../odd': a name is text"),
        ("class Odd(Algorithm):\n    name = 'odd'\n    Options = int", "Options must be a subclass"),
        ("class Odd(Algorithm):\n    name = 'odd'\n    Options = 3", "Options must be a subclass"),
        ("class Odd(Algorithm):\n    name = 'odd'\n    central = 'yes'", "central = 'yes': it must be True"),
        ("class Odd(Algorithm):\n    name = 'odd'\n    weights = 3", "weights = 3: it must be a method"),
        ("x = 1", "it defines nothing: no subclass of Algorithm, ModelOptions, ObjectiveOptions"),
        ("class Odd(Algorithm):\n    pass", "it defines nothing: no subclass of Algorithm"),
        ("sys.exit(0)", "ended the process with exit code 0"),
        ("os._exit(0)", "ended the process with exit code 0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise ValueError('one\\ntwo')", "ValueError: one two"),
    ],
)
def test_each_mistake_in_a_plugin_is_one_line_that_names_the_file(plugin, text, words):
    with pytest.raises(BadInput) as error:
        plugin(text)
    assert words in str(error.value)
    assert "odd.py" in str(error.value) and "\n" not in str(error.value)


def test_the_digest_of_a_plugin_belongs_to_its_cases_only(plugin):
    plugin("class Odd(Algorithm):\n    name = 'odd'")
    text = HEAD + "class Odd(Algorithm):\n    name = 'odd'"
    config = build("suite", CaseSettings("case", {"algorithm": "odd"})).case.config()
    assert config["plugin"] == {"odd.py": hashlib.sha256(text.encode()).hexdigest()}
    assert "plugin" not in build("suite", CaseSettings("case", {})).case.config()


def test_an_algorithm_cannot_end_the_process_when_it_is_checked(plugin, tmp_path):
    plugin("class Odd(Algorithm):\n    name = 'odd'\n    def objection(self, model): sys.exit(0)")
    path = tmp_path / "suite.toml"
    path.write_text('[case]\nalgorithm = "odd"')
    with pytest.raises(BadInput, match=r"case.algorithm: ended the process with exit code 0"):
        check_suite(read(path))


def test_a_version_of_the_same_second_and_length_is_read_anew(plugin):
    for rounds in ("1", "2"):
        plugin(f"class Odd(Algorithm):\n    name = 'odd'\n    warmth = {rounds}")
        assert str(ALGORITHMS.find("odd").warmth) == rounds


def test_when_a_run_is_given_up_is_no_part_of_its_configuration():
    plain, patient = (
        build("suite", CaseSettings("case", settings)).case for settings in ({}, {"watchdog_seconds": 7.0})
    )
    assert patient.watchdog_seconds == 7.0
    assert patient.digest() == plain.digest()
