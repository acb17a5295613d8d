"""Attacks and privacy that a case cannot have are one line; cases without them are recorded as before."""

import pytest

from fedmpi.config.suite import CaseSettings
from fedmpi.errors import BadInput
from fedmpi.registry.check import _Refused, build, stated

PRIVATE = {"privacy": "central", "weights": "equal"}


@pytest.mark.parametrize(
    ("settings", "key", "said"),
    [
        ({"attack": "labelflip"}, "attack", 'there is no "labelflip"; did you mean "label-flip"?'),
        ({"attack": {"name": "noise", "fraction": 1.5}}, "attack.fraction", "less than 1"),
        (
            {"attack": {"name": "noise", "fraction": 0.3, "clients": [1]}},
            "attack",
            "give fraction or clients",
        ),
        ({"attack": {"name": "noise", "clients": [1, 1]}}, "attack", "different numbers"),
        ({"attack": {"name": "noise", "from_round": 21}}, "attack.from_round", "rounds are 1 to 20"),
        ({"attack": {"name": "label-flip", "every": 2}}, "attack.every", "unknown key"),
        ({"attack": "noise", "algorithm": "self-train"}, "attack", "self-train has no update"),
        (
            {"attack": "label-flip", "dataset": "ESOL", "partition": "iid"},
            "attack",
            "one class per graph or node",
        ),
        ({"privacy": "clipping", "algorithm": "self-train"}, "privacy", "self-train sends no updates"),
        (
            {"privacy": "clipping", "algorithm": "fedcch", "model": {"norm": "graph"}},
            "privacy",
            "fedcch averages models",
        ),
        ({"privacy": "clipping", "algorithm": "scaffold", "optimizer": "sgd"}, "privacy", "a second vector"),
        (
            {"privacy": "clipping", "attack": "noise", "reduction": "secagg"},
            "privacy",
            "an attacker would not",
        ),
        ({"privacy": "central"}, "weights", 'use weights = "equal"'),
        ({**PRIVATE, "algorithm": "gcfl"}, "privacy", "gcfl shows more of a client"),
        ({**PRIVATE, "algorithm": "median"}, "privacy", "median shows more of a client"),
        ({"privacy": "distributed", "weights": "equal"}, "reduction", 'use "fixed32", or a secure one'),
    ],
)
def test_what_cannot_be_is_refused(settings, key, said):
    with pytest.raises((BadInput, _Refused)) as refused:
        build("demo", CaseSettings("demo", settings))
    assert refused.value.key == key
    assert said in refused.value.text


def test_a_case_without_attack_and_privacy_is_recorded_as_it_was():
    plain = build("demo", CaseSettings("demo", {})).case
    named = build("demo", CaseSettings("demo", {"attack": "none", "privacy": "none"})).case
    assert {"attack", "privacy"}.isdisjoint(plain.config())
    assert named.digest() == plain.digest()


def test_a_stored_case_is_the_same_case():
    settings = {**PRIVATE, "attack": {"name": "noise", "clients": [1, 2]}}
    case = build("demo", CaseSettings("demo", settings)).case
    assert build("demo", CaseSettings("demo", stated(case.config()))).case == case
