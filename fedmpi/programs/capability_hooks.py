"""The hooks of an algorithm's capabilities as the engine calls them; each class stands for one capability."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.base import Floats, Ints
from fedmpi.algorithms.capabilities import Division, Reports
from fedmpi.models.generator import Generator
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hook_calls import HookCalls


class CapabilityHooks:
    """The hooks of one capability; see the class of its name in `fedmpi.algorithms.capabilities`."""

    def __init__(self, calls: HookCalls) -> None:
        self._calls = calls


class Mends(CapabilityHooks):
    """Checked hooks of the capability."""

    def generator(self) -> Generator:
        """Return the network that generates missing neighbours."""
        return self._calls.ask_once("generator", (), checks.generator)


class RowAggregate(CapabilityHooks):
    """Checked hooks of the capability."""

    def aggregate(self, rows: npt.NDArray[np.float32], weights: Ints) -> Floats:
        """Return what takes the place of the mean."""
        mean = self._calls.call("aggregate", rows, weights)
        return self._calls.checked("aggregate", checks.mean, mean, rows.shape[1])


class Splits(CapabilityHooks):
    """Checked hooks of the capability."""

    @property
    def wants_rows(self) -> bool:
        """Whether `split` gets updates."""
        return bool(self._calls.call("wants_rows"))

    def observe(self, reports: Reports) -> None:
        """Show the round's reports; what is recorded of them cannot be changed there."""
        self._calls.call("observe", _read_only(reports))

    def split_candidates(self, round: int, group: Ints, reports: Reports) -> list[int]:
        """Return the groups that may split."""
        candidates = self._calls.call("split_candidates", round, group.copy(), _read_only(reports))
        took_part = ~np.isnan(reports["delta_norm"])
        return self._calls.checked("split_candidates", checks.split_candidates, candidates, group, took_part)

    @property
    def criterion_is_weighted(self) -> bool:
        """Whether the mean that decides is weighted."""
        return self._calls.ask("criterion_is_weighted", (), checks.yes_or_no)

    def should_split(self, mean_norm: float) -> bool:
        """Return whether a candidate splits."""
        return self._calls.ask("should_split", (mean_norm,), checks.yes_or_no)

    def split(self, members: Ints, rows: npt.NDArray[np.float32]) -> Division:
        """Return the parts of a group."""
        return self._calls.ask("split", (members.copy(), rows), checks.division, members)

    def after_splits(self) -> None:
        """Report to the algorithm which groups were split."""
        self._calls.call("after_splits")


def _read_only(reports: Reports) -> dict[str, Floats]:
    """Return views that cannot be written to."""
    views = {name: values.view() for name, values in reports.items()}
    for view in views.values():
        view.flags.writeable = False
    return views
