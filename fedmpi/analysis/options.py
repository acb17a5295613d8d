"""What sets a run apart from the defaults, as one short text: published figures find their rows by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fedmpi.algorithms.base import AlgorithmOptions
from fedmpi.analysis.summary import setting
from fedmpi.case.schema import Case
from fedmpi.errors import BadInput
from fedmpi.registry.algorithms import ALGORITHMS
from fedmpi.registry.check import AXES

_IN_OTHER_COLUMNS = {"suite", "name", "seed", "rounds", "dataset.name", "algorithm.name", "partition.seed"}
_HOW = {"kernels", "group_size", "device", "threads"}
_HOW |= {"checkpoint_seconds", "link.megabits", "link.latency_ms"}
"""How a result is computed, not what."""


def option_text(config: Mapping[str, Any]) -> str:
    """Return the settings of a run that are not the defaults, ``key=value`` in the order of their keys.

    Left out are the suite, the case's name, kernels, device and the like, and what has a column of its
    own: dataset, algorithm, rounds, seed, split seed. So runs of equal text, dataset, algorithm and
    rounds are repetitions of one another. What a ``protocol`` sets counts as default under it.

    Parameters
    ----------
    config : mapping
        The resolved configuration of a record or of a case.
    """
    options = _options_class(config)
    try:
        usual = flat(_named(config, options, ("name", "protocol")))
    except ValidationError:  # settings that this fedmpi does not know: all count
        usual = {}
    usual |= {f"{axis}.name": default for axis, (_, default) in AXES.items()}
    if "protocol" in options.model_fields:
        usual["algorithm.protocol"] = options.model_fields["protocol"].default
    found = {
        key.removesuffix(".name"): value
        for key, value in flat(config).items()
        if key not in _IN_OTHER_COLUMNS | _HOW and usual.get(key) != value
    }
    return " ".join(f"{key}={_text(value)}" for key, value in sorted(found.items()))


def split_options(text: str) -> dict[str, str]:
    """Return the settings of an option text by key."""
    return dict(part.split("=", 1) for part in text.split())


def _options_class(config: Mapping[str, Any]) -> type[AlgorithmOptions]:
    try:
        return ALGORITHMS.find(str(setting(config, "algorithm"))).Options
    except BadInput:  # of a plug-in that is not here: all its options count
        return AlgorithmOptions


def _named(
    config: Mapping[str, Any], options: type[AlgorithmOptions], keys: tuple[str, ...]
) -> dict[str, Any]:
    """Return the configuration of the same name on each axis, the algorithm's `keys` too; else defaults."""
    table = config["algorithm"]
    chosen = {key: table[key] for key in keys if key in options.model_fields and key in table}
    values: dict[str, Any] = {"suite": "", "name": "", "algorithm": options.model_validate(chosen)}
    for axis, (classes, default) in AXES.items():
        name = setting(config, axis) if setting(config, axis) in classes else default
        values[axis] = classes[name].model_validate({"name": name})
    return Case.model_validate(values).config()


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the settings of a configuration by dotted name."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
