"""What a plug-in file may define, and what of it belongs to a run."""

import pytest

from fedmpi.config.suite import CaseSettings, read
from fedmpi.registry.algorithms import ALGORITHMS
from fedmpi.registry.check import build, check_suite
from tests.refusals import refused, table

HEAD = "import os, sys\nfrom fedmpi.algorithms.base import Algorithm\nfrom fedmpi.algorithms.robust import Robust\n"


ODD = "class Odd(Algorithm):\n    name = 'odd'\n    "
MISTAKES = """
Options = int -> Options must be a subclass
Options = 3 -> Options must be a subclass
pools = 'yes' -> pools = 'yes': it must be True
change = 3 -> change = 3: it must be a method
weights = 3 -> weights = 3: it must be a method
decides = {'groups', 'splits'}; def decide(self, server): pass
    -> class Odd: decides = groups, splits: each sets the groups, so keep one of them
decides = {'groups', 'mixes'}; def decide(self, server): pass
    -> class Odd: decides = groups, mixes: each sets the groups, so keep one of them
decides = {'mixes', 'splits'}; def decide(self, server): pass
    -> class Odd: decides = mixes, splits: each sets the groups, so keep one of them
decides = {'mixes'}; def decide(self, server): pass; def groups(self, num_clients): pass
    -> class Odd: groups is never called: where models are mixed, each client is a group
decides = 'groups' -> class Odd: decides = 'groups': it must be a set of groups, splits, weights, mixes, moves
decides = {'means'}; def decide(self, server): pass
    -> class Odd: decides = {'means'}: it must be a set of groups, splits, weights, mixes, moves
decides = {'groups'} -> class Odd: decides = {'groups'}: define the hook decide
asks = ('rows',) -> class Odd: asks = ('rows',): it must be a set of means, rows
asks = {'rows'} -> class Odd: asks = {'rows'}: define the hook decide
sends = 'control' -> class Odd: sends = 'control': it must be a tuple of names
def updat(self, model, mean, num_clients): pass
    -> class Odd: updat is no hook; did you mean update? Begin names of your own methods with _
def update(self, model, mean): pass
    -> class Odd: update(self, model, mean): it is called as (self, model, mean, num_clients)
def __init__(self, lr, mu): pass
    -> class Odd: __init__(self, lr, mu): it is called as (self, options)
"""
"""In the body of a class, lines apart by semicolons, and what is said of it."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((ODD + body.replace("; ", "\n    "), words) for body, words in table(MISTAKES)),
        ("class Odd(Algorithm):\n    name = 5", "class Odd: name = 5: a name is text"),
        ("class Odd(Algorithm):\n    name = '../odd'", "name = '../odd': a name is text"),
        ("class Odd(Robust):\n    name = 'odd'", "class Odd: it needs a method aggregate: define it"),
        ("class Odd(Algorithm):\n    pass", "it defines nothing: no subclass of Algorithm"),
        ("x = 1", "it defines nothing: no subclass of Algorithm, ModelOptions, ObjectiveOptions"),
        ("sys.exit(0)", "ended the process with exit code 0"),
        ("os._exit(0)", "ended the process with exit code 0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise ValueError('one\\ntwo')", "ValueError: one two"),
    ],
)
def test_each_mistake_in_a_plugin_is_one_line_that_names_the_file(plugin, text, words):
    with refused(words, match=r"odd\.py"):
        plugin(HEAD + text)


@pytest.mark.parametrize(
    "body",
    [
        # decisions that do not both set the groups
        "decides = {'splits', 'weights', 'moves'}; def decide(self, server): pass; def weights(self, n): pass",
        "def _updat(self): pass; def momentum(self): pass",
        "def update(self, model, mean, *rest, decay=0.9): pass",
        "@staticmethod; def update(model, mean, num_clients): return mean",
    ],
)
def test_what_a_class_may_have(plugin, body):
    plugin(HEAD + ODD + body.replace("; ", "\n    "))
    assert ALGORITHMS["odd"].__name__ == "Odd"


def test_an_algorithm_cannot_end_the_process_when_it_is_checked(plugin, tmp_path):
    plugin(HEAD + ODD + "def validate(self, model): sys.exit(0)")
    (tmp_path / "suite.toml").write_text('[case]\nalgorithm = "odd"')
    with refused("case.algorithm: odd: hook validate raised SystemExit"):
        check_suite(read(tmp_path / "suite.toml"))


REGROUPS = """decides = {'groups'}
    def messages(self, model, classes): return {}
    def decide(self, server): server.regroup([0] * len(server.group))
"""
PROGRAM = "def train(self, client): client.run_epochs()"


@pytest.mark.parametrize(("body", "optimizer"), [(REGROUPS, "adam"), (PROGRAM, "sgd")])
def test_kernels_follow_from_what_clients_do(plugin, tmp_path, body, optimizer):
    """A client that reports on its model, or has a program of its own, is trained alone."""
    plugin(HEAD + ODD + body)
    settings = {"algorithm": "odd", "optimizer": optimizer}
    assert build("suite", CaseSettings("case", settings)).case.kernels == "compiled"
    suite = tmp_path / "suite.toml"
    suite.write_text(f'[case]\nalgorithm = "odd"\noptimizer = "{optimizer}"\nkernels = "grouped"')
    with refused('"grouped" cannot run odd as it is here: use "compiled", "csr"'):
        check_suite(read(suite))


def test_a_version_of_the_same_second_and_length_is_read_anew(plugin):
    for rounds in ("1", "2"):
        plugin(f"{HEAD}{ODD}warmth = {rounds}")
        assert str(ALGORITHMS.find("odd").warmth) == rounds


def test_when_a_run_is_given_up_is_no_part_of_its_configuration():
    plain, patient = (
        build("suite", CaseSettings("case", settings)).case for settings in ({}, {"watchdog_seconds": 7.0})
    )
    assert patient.watchdog_seconds == 7.0
    assert patient.digest() == plain.digest()
