"""What algorithms make of the exchange, and which settings cannot have it (imports without torch).

A class has properties, by its hooks and declarations. A rule is a setting with the properties that it cannot
have. No rule knows an algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.declared import overrides
from fedmpi.case.attacks import NoAttack, UpdateAttack
from fedmpi.case.privacy import Clipped, Private
from fedmpi.case.reductions import ClippedOptions, SecureOptions
from fedmpi.case.schema import Case
from fedmpi.partition.options import PopulationOptions


class Property(NamedTuple):
    """What a class makes of the exchange: how it is written there, and whether an algorithm has it."""

    written: str
    has: Callable[[Algorithm], object]


PROPERTIES: Mapping[str, Property] = {
    "no updates": Property(
        "`communicates = False`, `pools = True`", lambda one: one.pools or not one.communicates
    ),
    "models": Property(
        '`decides` "groups" or "mixes": models are averaged', lambda one: one.decides & {"groups", "mixes"}
    ),
    "vectors": Property("`sends`", lambda one: one.sends),
    "reports": Property("`numbers`, `messages`", lambda one: one.numbers or overrides(type(one), "messages")),
    "tells": Property("`tells`", lambda one: overrides(type(one), "tells")),
    "decide": Property("`decide`", lambda one: overrides(type(one), "decide")),
    "weights": Property('`decides` "weights"', lambda one: "weights" in one.decides),
    "groups": Property(
        '`decides` "groups", "splits" or "mixes"', lambda one: one.decides & {"groups", "splits", "mixes"}
    ),
    "no sum": Property('`decides` "moves" or "mixes"', lambda one: one.decides & {"moves", "mixes"}),
    "means": Property('`asks` "means"', lambda one: "means" in one.asks),
    "rows": Property(
        '`asks` "rows", `decides` "mixes"', lambda one: "rows" in one.asks or "mixes" in one.decides
    ),
    "memory": Property("`memory`, `moments`", lambda one: overrides(type(one), "memory", "moments")),
    "fields": Property("`fields`", lambda one: overrides(type(one), "fields")),
    "sampling": Property(
        "`participants`, `groups`, `weights` of its own",
        lambda one: overrides(type(one), "participants", "groups", "weights"),
    ),
    "participants": Property("`participants` of its own", lambda one: overrides(type(one), "participants")),
    "own groups": Property("`groups` of its own", lambda one: overrides(type(one), "groups")),
    "server": Property(
        "`central`, `server_memory`", lambda one: one.central or overrides(type(one), "server_memory")
    ),
    "prepare": Property("`prepare`", lambda one: overrides(type(one), "prepare")),
}

_ALONE = ("weights", "groups", "no sum", "means", "rows")
"""Properties of a server that decides by what single clients report."""


@dataclass(frozen=True)
class Rule:
    """A setting, and what it cannot have.

    Attributes
    ----------
    key : str
        Of the setting that is named.
    title : str
        Of the setting, for people.
    applies : callable
        Whether a case has it.
    without : dict of str to str
        Why not, and what to do, by property; ``{name}``, ``{reduction}``, ``{privacy}``,
        ``{compression}``, ``{down}`` and ``{schedule}`` are filled in.
    """

    key: str
    title: str
    applies: Callable[[Case], bool]
    without: Mapping[str, str]


def _each(names: tuple[str, ...], text: str) -> dict[str, str]:
    return dict.fromkeys(names, text)


RULES = (
    Rule(
        "record",
        '`record = "protocol"`',
        lambda case: case.record == "protocol",
        _each((*_ALONE, "fields", "reports"), '{name} needs reports of single clients: use "full"')
        | {"no updates": '{name} has no sums over clients: use "full"'},
    ),
    Rule(
        "reduction",
        "`reduction` other than exact by MPI",
        lambda case: case.reduction.name != "exact" or case.reduction.transport != "mpi",
        {"no sum": "{name} needs every client's update and computes no sum: remove the setting `reduction`"},
    ),
    Rule(
        "reduction",
        "sums at a public exponent",
        lambda case: isinstance(case.reduction, ClippedOptions),
        {"weights": 'the weights of {name} can exceed 1, "{reduction}" needs a sum of 1: use "exact"'},
    ),
    Rule(
        "reduction",
        "secure sums",
        lambda case: case.reduction.secret,
        {
            "tells": 'the server of {name} sees what single clients send: use "exact"',
            "rows": '{name} compares single updates, which "{reduction}" hides: use "exact"',
            "prepare": 'clients of {name} show what they have before round 1: use "exact"',
        },
    ),
    Rule(
        "reduction.server",
        "an active server",
        lambda case: isinstance(case.reduction, SecureOptions) and case.reduction.server == "active",
        {
            "means": "{name} sums the same updates again with other weights, when the server says so: "
            'use "semi-honest"'
        },
    ),
    Rule(
        "reduction.dropouts",
        "dropouts",
        lambda case: bool(case.reduction.dropouts.steps),
        _each(
            ("weights", "no sum", "tells", "rows"), "{name} needs something of every participant: remove it"
        )
        | {"no updates": "{name} sends no updates: remove it"},
    ),
    Rule(
        "reduction.dropouts",
        "dropouts before training",
        lambda case: "training" in case.reduction.dropouts.steps,
        {"groups": '{name} groups clients by what they report after training: use "shares" or a later step'},
    ),
    Rule(
        "attack",
        "attacks",
        lambda case: not isinstance(case.attack, NoAttack),
        {"no updates": "{name} has no update that could be attacked: use an algorithm that shares, or none"},
    ),
    Rule(
        "reduction.dropouts",
        "attacks with dropouts",
        lambda case: isinstance(case.attack, UpdateAttack) and bool(case.reduction.dropouts.steps),
        {
            "models": "attackers start from their group's model, and {name} keeps none of a group "
            "whose sum is lost: remove the setting"
        },
    ),
    Rule(
        "privacy",
        "clipped updates",
        lambda case: isinstance(case.privacy, Clipped),
        {
            "no updates": '{name} sends no updates that "{privacy}" could shorten: use "fedavg"',
            "models": '{name} averages models, and "{privacy}" shortens updates: use "fedavg"',
            "vectors": '{name} sends a second vector, which "{privacy}" does not shorten: use "fedavg"',
        },
    ),
    Rule(
        "privacy",
        "differential privacy",
        lambda case: isinstance(case.privacy, Private),
        _each(
            (*_ALONE, "vectors", "reports", "tells", "decide"),
            '{name} shows more of a client than the mean with noise: use "fedavg"',
        )
        | {
            "prepare": "{name} shows what clients have before round 1, without noise: remove it",
            "sampling": "{name} samples, groups or weighs in its own way, for which epsilon is not known",
        },
    ),
    Rule(
        "compression",
        "compressed updates",
        lambda case: case.compression.name != "none",
        {
            "no updates": '{name} sends no updates that "{compression}" could shorten: use "none"',
            "models": '{name} averages models, and "{compression}" compresses updates: use "none"',
        },
    ),
    Rule(
        "down_compression",
        "compressed changes of models",
        lambda case: case.down_compression.name != "none",
        {
            "no updates": '{name} sends no models whose changes "{down}" could shorten: use "none"',
            "models": "{name} makes new models each round, and only changes are compressed: use "
            'down_compression = "none"',
        },
    ),
    Rule(
        "compression",
        "a basis of all clients",
        lambda case: case.compression.pooled,
        _each(
            ("rows", "no sum", "means"),
            '{name} needs single updates, and "{compression}" decodes their mean alone: use "top-k"',
        ),
    ),
    Rule(
        "schedule",
        "schedules by devices",
        lambda case: case.schedule.clocked,
        {
            "participants": "{name} chooses clients in its own way, and so does schedule "
            '"{schedule}": use "synchronous"'
        },
    ),
    Rule(
        "schedule",
        "updates of older models",
        lambda case: case.schedule.stale,
        {"no updates": '{name} sends no updates that could be stale: use "synchronous"'}
        | _each(
            ("models", "vectors", "tells", "groups", "own groups", "no sum", "means", "rows"),
            '{name} needs updates that start from one model, and those of schedule "{schedule}" do not: use '
            '"synchronous", or "deadline" with late = "dropped"',
        ),
    ),
    Rule(
        "schedule.clock",
        "updates by the real clock",
        lambda case: case.schedule.races,
        _each(
            ("decide", "weights", "reports", "prepare"),
            "{name} has a server that does more than average, and by the real clock it only does that: use "
            '"virtual"',
        ),
    ),
    Rule(
        "topology",
        "a topology without a server",
        lambda case: case.topology.gossips,
        _each(
            (
                "decide",
                "tells",
                "weights",
                "groups",
                "no sum",
                "means",
                "rows",
                "reports",
                "fields",
                "server",
            ),
            '{name} has a server that does more than average: use topology "server"',
        )
        | {
            "no updates": '{name} averages nothing: use topology "server"',
            "models": '{name} forms groups anew: use topology "server"',
            "vectors": '{name} sends a second vector: use topology "server"',
            "sampling": '{name} samples, groups or weighs in its own way: use topology "server"',
            "prepare": 'clients of {name} exchange what they have by a server: use topology "server"',
        },
    ),
    Rule(
        "algorithm",
        "a population",
        lambda case: isinstance(case.partition, PopulationOptions),
        _each(
            ("no updates", "memory", "reports", "groups", "prepare"),
            '{name} needs clients that stay, partition "population" samples others each round: use fedavg',
        ),
    ),
)
"""All settings that limit what algorithms make of the exchange."""


def properties(algorithm: Algorithm) -> list[str]:
    """Return the properties of an algorithm."""
    return [name for name, each in PROPERTIES.items() if each.has(algorithm)]


def check(algorithm: Algorithm, case: Case) -> tuple[str, str] | None:
    """Return the first setting that the algorithm cannot have, and what to do; None where all fit."""
    found = properties(algorithm)
    words = {"name": algorithm.name, "reduction": case.reduction.name, "privacy": case.privacy.name}
    words |= {"schedule": case.schedule.name}
    words |= {"compression": case.compression.name, "down": case.down_compression.name}
    for rule in RULES:
        if rule.applies(case):
            for name in found:
                if name in rule.without:
                    return rule.key, rule.without[name].format(**words)
    return None
