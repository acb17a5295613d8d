"""The reference of settings: every field of every option class has a meaning; defaults are those that a case gets."""

import pytest

from fedmpi.config.suite import CaseSettings
from fedmpi.errors import BadInput
from fedmpi.registry.algorithms import ALGORITHMS
from fedmpi.registry.check import build
from fedmpi.registry.reference import axes, find
from fedmpi.registry.reference import hint as hint_of

NAMES = [(axis.name, entry) for axis in axes().values() for entry in axis.entries]
"""Those known before any test: plug-ins of other tests may stay known in their process."""


def test_every_name_and_every_setting_has_a_meaning():
    assert [(axis, each.name) for axis, each in NAMES if not each.meaning] == []
    settings = [(axis, each.name, setting) for axis, each in NAMES for setting in each.settings]
    assert [mark for *mark, setting in settings if len(setting.meaning.split()) < 2] == []


def test_every_published_algorithm_names_its_paper():
    own = {name for name, kind in ALGORITHMS.items() if kind.__module__.startswith("fedmpi.")}
    algorithms = axes()["algorithm"].entries
    assert {each.name for each in algorithms if not each.paper} & own == {"self-train", "centralised"}


def test_the_default_is_that_of_the_name():
    ((_, (entry,)),) = find("algorithm", "gcfl-plus-dws")
    defaults = {each.key: each.default for each in entry.settings}
    case = build("s", CaseSettings("c", {"algorithm": "gcfl-plus-dws"})).case
    assert defaults["algorithm.sequence"] == case.algorithm.sequence == "delta"


def test_a_name_stands_for_itself_on_every_axis_and_a_dataset_for_its_family():
    found = [(axis.name, entries[0].name) for axis, entries in find("fedstar")]
    assert found == [("model", "fedstar"), ("algorithm", "fedstar")]
    ((_, (entry,)),) = find("dataset", "PROTEINS")
    assert entry.name == "tu"
    assert find("PROTEINS") == find("dataset", "tu")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("algoritm",), 'there is no axis, name or setting "algoritm"; did you mean "algorithm"?'),
        (("algorithm", "fedprx"), 'algorithm: there is no "fedprx"; did you mean "fedprox"?'),
        (("modle", "gin"), 'there is no axis "modle"; did you mean "model"?'),
    ],
)
def test_unknown_names_are_refused_with_a_suggestion(arguments, message):
    with pytest.raises(BadInput) as refused:
        find(*arguments)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        *((key, "; did you mean optimizer.lr or algorithm.lr?") for key in ("lr", "learning_rate")),
        ("algorithm.mu", "; fedprox, moon have it"),
        ("optimizer.learning_rate", "; did you mean optimizer.lr?"),
        ("seeds", "; did you mean seed?"),
        ("epochs", "; did you mean local_epochs?"),
        ("algorithm.epochs", "; fedsage-plus has it"),
        ("partition.alpha", "; dirichlet-label, dirichlet-quantity, fedgraphnn, population have it"),
        *((key, "") for key in ("nonsense", "algorithm.nonsense")),
    ],
)
def test_a_key_is_known_elsewhere(key, hint):
    assert hint_of(key) == hint
