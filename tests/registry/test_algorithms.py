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

HEAD = "import os, sys\nfrom fedmpi.algorithms.base import Algorithm\nfrom fedmpi.algorithms.robust import Robust\n"


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
        ("class Odd(Algorithm):\n    name = 'odd'\n    pools = 'yes'", "pools = 'yes': it must be True"),
        (
            "class Odd(Algorithm):\n    name = 'odd'\n    change = 3",
            "change = 3: it must be a method",
        ),
        (
            "class Odd(Robust):\n    name = 'odd'",
            "class Odd: it needs a method aggregate: define it",
        ),
        ("class Odd(Algorithm):\n    name = 'odd'\n    weights = 3", "weights = 3: it must be a method"),
        *(
            (
                f"class Odd(Algorithm):\n    name = 'odd'\n    decides = {{'{one}', '{two}'}}\n"
                "    def decide(self, server): pass",
                f"class Odd: decides = {one}, {two}: each sets the groups, so keep one of them",
            )
            for one, two in (("groups", "splits"), ("groups", "mixes"), ("mixes", "splits"))
        ),
        (
            "class Odd(Algorithm):\n    name = 'odd'\n    decides = {'mixes'}\n"
            "    def decide(self, server): pass\n    def groups(self, num_clients): pass",
            "class Odd: groups is never called: where models are mixed, each client is a group",
        ),
        (
            "class Odd(Algorithm):\n    name = 'odd'\n    decides = 'groups'",
            "class Odd: decides = 'groups': it must be a set of groups, splits, weights, mixes, moves",
        ),
        (
            "class Odd(Algorithm):\n    name = 'odd'\n    decides = {'means'}\n    def decide(self, server): pass",
            "class Odd: decides = {'means'}: it must be a set of groups, splits, weights, mixes, moves",
        ),
        (
            "class Odd(Algorithm):\n    name = 'odd'\n    asks = ('rows',)",
            "class Odd: asks = ('rows',): it must be a set of means, rows",
        ),
        (
            "class Odd(Algorithm):\n    name = 'odd'\n    asks = {'rows'}",
            "class Odd: asks = {'rows'}: define the hook decide",
        ),
        (
            "class Odd(Algorithm):\n    name = 'odd'\n    decides = {'groups'}",
            "class Odd: decides = {'groups'}: define the hook decide",
        ),
        (
            "class Odd(Algorithm):\n    name = 'odd'\n    sends = 'control'",
            "class Odd: sends = 'control': it must be a tuple of names",
        ),
        (
            "class Odd(Algorithm):\n    name = 'odd'\n    def updat(self, model, mean, num_clients): pass",
            "class Odd: updat is no hook; did you mean update? Begin names of your own methods with _",
        ),
        (
            "class Odd(Algorithm):\n    name = 'odd'\n    def update(self, model, mean): pass",
            "class Odd: update(self, model, mean): it is called as (self, model, mean, num_clients)",
        ),
        (
            "class Odd(Algorithm):\n    name = 'odd'\n    def __init__(self, lr, mu): pass",
            "class Odd: __init__(self, lr, mu): it is called as (self, options)",
        ),
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


def test_decisions_that_do_not_both_set_the_groups_go_together(plugin):
    text = "class Odd(Algorithm):\n    name = 'odd'\n    decides = {'splits', 'weights', 'moves'}\n"
    plugin(text + "    def decide(self, server): pass\n    def weights(self, samples): return samples")
    assert ALGORITHMS["odd"].decides == {"splits", "weights", "moves"}


def test_own_methods_and_further_arguments_with_defaults_are_fine(plugin):
    text = (
        "class Odd(Algorithm):\n    name = 'odd'\n    def _updat(self): pass\n    def momentum(self): pass\n"
    )
    plugin(text + "    def update(self, model, mean, *rest, decay=0.9): pass")
    assert ALGORITHMS["odd"].__name__ == "Odd"


def test_a_hook_may_be_a_static_method(plugin):
    text = "class Odd(Algorithm):\n    name = 'odd'\n    @staticmethod\n"
    plugin(text + "    def update(model, mean, num_clients): return mean")
    assert ALGORITHMS["odd"].update(0, 1, 2) == 1


def test_the_digest_of_a_plugin_belongs_to_its_cases_only(plugin):
    plugin("class Odd(Algorithm):\n    name = 'odd'")
    text = HEAD + "class Odd(Algorithm):\n    name = 'odd'"
    config = build("suite", CaseSettings("case", {"algorithm": "odd"})).case.config()
    assert config["plugin"] == {"odd.py": hashlib.sha256(text.encode()).hexdigest()}
    assert "plugin" not in build("suite", CaseSettings("case", {})).case.config()


def test_an_algorithm_cannot_end_the_process_when_it_is_checked(plugin, tmp_path):
    plugin("class Odd(Algorithm):\n    name = 'odd'\n    def validate(self, model): sys.exit(0)")
    path = tmp_path / "suite.toml"
    path.write_text('[case]\nalgorithm = "odd"')
    with pytest.raises(BadInput, match=r"case.algorithm: odd: hook validate raised SystemExit"):
        check_suite(read(path))


REGROUPS = """class Odd(Algorithm):
    name = 'odd'
    decides = {'groups'}
    def messages(self, model, classes): return {}
    def decide(self, server): server.regroup([0] * len(server.group))
"""
PROGRAM = """class Odd(Algorithm):
    name = 'odd'
    def train(self, client): client.run_epochs()
"""


@pytest.mark.parametrize(("text", "optimizer"), [(REGROUPS, "adam"), (PROGRAM, "sgd")])
def test_kernels_follow_from_what_clients_do(plugin, tmp_path, text, optimizer):
    """A client that reports on its model, or has a program of its own, is trained alone."""
    plugin(text)
    settings = {"algorithm": "odd", "optimizer": optimizer}
    assert build("suite", CaseSettings("case", settings)).case.kernels == "compiled"
    path = tmp_path / "suite.toml"
    path.write_text(f'[case]\nalgorithm = "odd"\noptimizer = "{optimizer}"\nkernels = "grouped"')
    with pytest.raises(BadInput, match='"grouped" cannot run odd as it is here: use "compiled", "csr"'):
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
