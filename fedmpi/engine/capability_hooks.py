"""The hooks of an algorithm's capabilities as the engine calls them; each class stands for one capability."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms import capabilities
from fedmpi.algorithms.base import Floats, Ints
from fedmpi.algorithms.capabilities import (
    RECEIVED_LOSS,
    Bytes,
    Division,
    Reports,
    RoundWeights,
    Trained,
)
from fedmpi.engine import hook_checks as checks
from fedmpi.engine.hook_calls import HookCalls
from fedmpi.models.generator import Generator
from fedmpi.models.options import ModelOptions
from fedmpi.store.schema import Field


class CapabilityHooks:
    """The hooks of one capability; see the class of its name in `fedmpi.algorithms.capabilities`."""

    def __init__(self, calls: HookCalls) -> None:
        self._calls = calls


class Mends(CapabilityHooks):
    """Checked hooks of the capability."""

    def generator(self) -> Generator:
        """Return the network that generates missing neighbours."""
        return self._calls.ask_once("generator", (), checks.generator)


class Prototypes(CapabilityHooks):
    """Checked hooks of the capability."""

    @property
    def predicts(self) -> bool:
        """Whether prototypes decide on held-out graphs."""
        return self._calls.ask("predicts_by_prototypes", (), checks.yes_or_no)

    def global_prototypes(self, means: npt.NDArray[np.float32], counts: Ints) -> npt.NDArray[np.float32]:
        """Return the prototypes that clients get."""
        found = self._calls.call("global_prototypes", means, counts)
        return self._calls.checked("global_prototypes", checks.rows, found, means.shape[1:])


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


class Regroups(CapabilityHooks):
    """Checked hooks of the capability."""

    def report_size(self, model: ModelOptions) -> int:
        """Return the bytes of a client's report."""
        return self._calls.ask_once("report_size", (model,), checks.report_size)

    def report(self, trained: Trained, size: int) -> Bytes:
        """Return a client's report, uint8 [size]."""
        return self._calls.ask("report", (trained,), checks.report, size)

    def group(self, seed: int, round: int, reports: Bytes) -> Ints:
        """Return the groups of the round."""
        return self._calls.ask("group", (seed, round, reports), checks.groups, self._calls.num_clients)


class PersonalAggregates(CapabilityHooks):
    """Checked hooks of the capability."""

    def num_statistics(self, model: ModelOptions, classes: int) -> int:
        """Return the length of a client's statistics."""
        return self._calls.ask_once("num_statistics", (model, classes), checks.num_statistics, key=classes)

    def statistics(self, trained: Trained, size: int) -> npt.NDArray[np.float32]:
        """Return a client's statistics, float32 [size]."""
        return self._calls.ask("statistics", (trained,), checks.rows, (size,))

    def client_weights(self, statistics: npt.NDArray[np.float32], samples: Ints) -> Floats:
        """Return the weights of the participants' models in each other's means; the sum of each row is 1."""
        count = len(statistics)
        return self._calls.ask("client_weights", (statistics, samples), checks.client_weights, count)


class WeightsFromReports(CapabilityHooks):
    """Checked hooks of the capability."""

    @property
    def received_loss(self) -> bool:
        """Whether reports hold the loss at the received model."""
        return isinstance(self._calls.algorithm, capabilities.WeightsFromLosses)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the clients' reports beside their numbers of samples."""
        usual = ("steps", "train_loss", "delta_norm", "gradient_norm")
        return (*usual, RECEIVED_LOSS) if self.received_loss else usual

    def round_weights(self, round: int, lr: float, reports: Reports) -> RoundWeights:
        """Return the weights of a group's participants as they enter the sum."""
        found, count = self._calls.call("round_weights", round, lr, reports), len(reports["samples"])
        return self._calls.checked("round_weights", checks.round_weights, found, count)


class Records(CapabilityHooks):
    """Checked hooks of the capability."""

    def fields(self) -> tuple[Field, ...]:
        """Return the algorithm's own fields."""
        return self._calls.ask_once("fields", (self._calls.num_clients,), checks.fields)

    def field_values(self) -> dict[str, npt.NDArray[Any]]:
        """Return the round's values."""
        found, count = self._calls.call("field_values"), self._calls.num_clients
        return self._calls.checked("field_values", checks.field_values, found, self.fields(), count)

    def check_fields(self, given: Collection[str]) -> None:
        """Refuse a round's row that lacks what the algorithm's record fields promise."""
        for field in self.fields():
            if field.name not in given:
                raise self._calls.failed("field_values", f'gave no "{field.name}", which fields() names')


class ServerState(CapabilityHooks):
    """Checked hooks of the capability."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the server's state."""
        return self._calls.checked("state", checks.state, self._calls.call("state"))

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore the server's state from a checkpoint."""
        self._calls.call("restore", arrays)


def _read_only(reports: Reports) -> dict[str, Floats]:
    """Return views that cannot be written to."""
    views = {name: values.view() for name, values in reports.items()}
    for view in views.values():
        view.flags.writeable = False
    return views
