"""The one case that a benchmark works on (imports without torch)."""

from __future__ import annotations

from collections.abc import Sequence

from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.errors import BadInput
from fedmpi.registry.check import Checked, check_suite

DEFAULT = "gcfl/proteins"
"""Suite that is measured when none is named, with FedAvg."""


def changes(suite: str | None, overrides: Sequence[str]) -> list[str]:
    """Return the ``--set`` of a benchmark, with FedAvg where no suite is named."""
    return ["algorithm=fedavg", *overrides] if suite is None else list(overrides)


def choose(suite: str | None, overrides: Sequence[str]) -> Checked:
    """Return the case that a suite and ``--set`` leave.

    Raises
    ------
    BadInput
        The suite is wrong, or more than one case is left.
    """
    name = suite or DEFAULT
    cases = check_suite(read(locations.find(name), changes(suite, overrides)))
    if len(cases) > 1:
        raise BadInput(f"{name} has {len(cases)} cases, one is measured: choose it with --set KEY=VALUE")
    return cases[0]
