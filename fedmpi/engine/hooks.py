"""An algorithm as the engine calls it: every hook's name is noted, and what it returns is checked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.base import Algorithm, Bytes, Division, Floats, Ints, Trained, Vector
from fedmpi.algorithms.row_aggregate import RowAggregate
from fedmpi.engine import hook_checks as checks
from fedmpi.engine.hook_checks import Breach
from fedmpi.engine.whereabouts import Whereabouts
from fedmpi.errors import RankFailed
from fedmpi.models.options import ModelOptions
from fedmpi.store.schema import Field

T = TypeVar("T")

FLAGS = (
    "name",
    "communicates",
    "penalises",
    "pools",
    "central",
    "controls",
    "reads_share",
    "regroups",
    "wants_rows",
)


class Hooks(Algorithm):
    """Stands between the engine and an algorithm.

    Parameters
    ----------
    algorithm : Algorithm
    num_clients : int
        Of the federation.
    where : Whereabouts
        Of this rank.

    Raises
    ------
    RankFailed
        By any method: the hook returned what it must not, or ended the process. The text names
        algorithm, hook and, of a plug-in, its file.
    """

    def __init__(self, algorithm: Algorithm, num_clients: int, where: Whereabouts) -> None:
        super().__init__(algorithm.options)
        self._algorithm, self._num_clients, self.where = algorithm, num_clients, where
        self._settled: dict[tuple[Any, ...], Any] = {}
        vars(self).update({flag: getattr(algorithm, flag) for flag in FLAGS})
        self.aggregates_rows = isinstance(algorithm, RowAggregate)
        vars(self)["central"] |= self.aggregates_rows  # the rows are on rank 0, and so is what comes of them

    def _call(self, hook: str, *arguments: Any) -> Any:
        """Call a hook and note that it runs."""
        self.where.hook = (f"{self.name}.{hook}",)
        try:
            called = getattr(self._algorithm, hook)
            return called(*arguments) if callable(called) else called
        except SystemExit as error:
            raise self._failed(hook, f"ended the process with exit code {error.code!r}") from None
        except KeyboardInterrupt:  # no Ctrl-C, which raises nothing in a run
            raise self._failed(hook, "raised KeyboardInterrupt") from None
        except Exception as error:
            error.add_note(str(self._failed(hook, f"raised {type(error).__name__}")))
            raise
        finally:
            self.where.hook = None

    def _once(self, key: tuple[Any, ...], ask: Callable[[], T]) -> T:
        """Return the first answer to a question that the run asks again: what was checked is what holds."""
        if key not in self._settled:
            self._settled[key] = ask()
        answer: T = self._settled[key]
        return answer

    def _failed(self, hook: str, text: str) -> RankFailed:
        module = type(self._algorithm).__module__
        file = getattr(sys.modules.get(module), "__file__", None)
        place = "" if module.startswith("fedmpi.") or file is None else f" in {file}"
        return RankFailed(f"algorithm {self.name}: hook {hook}{place} {text}")

    def _checked(self, hook: str, check: Callable[..., T], *arguments: Any) -> T:
        try:
            return check(*arguments)
        except Breach as breach:
            raise self._failed(hook, str(breach)) from None

    def begin(self, trained: int, num_clients: int) -> None:
        """See `Algorithm.begin`."""
        self._call("begin", trained, num_clients)

    def participants(self, seed: int, round: int, num_clients: int, fraction: float) -> Ints:
        """See `Algorithm.participants`."""
        found = self._call("participants", seed, round, num_clients, fraction)
        return self._checked("participants", checks.participants, found, num_clients)

    def groups(self, num_clients: int) -> Ints:
        """See `Algorithm.groups`."""

        def ask() -> Ints:
            return self._checked("groups", checks.groups, self._call("groups", num_clients), num_clients)

        return self._once(("groups",), ask).copy()

    def shares(self, name: str, share: str) -> bool:
        """See `Algorithm.shares`."""

        def ask() -> bool:
            return self._checked("shares", checks.yes_or_no, self._call("shares", name, share))

        return self._once(("shares", name, share), ask)

    def objection(self, model: ModelOptions) -> str:
        """See `Algorithm.objection`."""
        return str(self._call("objection", model) or "")

    def penalty(self, parameters: Vector, reference: Vector, gradient: Vector) -> None:
        """See `Algorithm.penalty`; what the client received must stay as it is."""
        before = getattr(reference, "_version", 0)
        self._call("penalty", parameters, reference, gradient)
        if getattr(reference, "_version", 0) != before:
            raise self._failed("penalty", "changed `reference`: only `gradient` may change")

    def correction(self, own: Any, server: Any) -> Any:
        """See `Algorithm.correction`."""
        return self._checked("correction", checks.like, self._call("correction", own, server), own)

    def renewed(self, own: Any, server: Any, moved: Any, steps: int, lr: float) -> Any:
        """See `Algorithm.renewed`."""
        found = self._call("renewed", own, server, moved, steps, lr)
        return self._checked("renewed", checks.like, found, own)

    def report_size(self, model: ModelOptions) -> int:
        """See `Algorithm.report_size`."""

        def ask() -> int:
            return self._checked("report_size", checks.report_size, self._call("report_size", model))

        return self._once(("report_size",), ask)

    def report(self, trained: Trained) -> Bytes:
        """See `Algorithm.report`."""
        found = self._call("report", trained)
        return self._checked("report", checks.report, found, self._settled[("report_size",)])

    def weights(self, samples: Ints) -> Ints:
        """See `Algorithm.weights`."""

        def ask() -> Ints:
            found = self._call("weights", samples.copy())
            return self._checked("weights", checks.weights, found, self._num_clients)

        return self._once(("weights",), ask).copy()

    def check_averages(self, group: Ints, weights: Ints, participants: Ints) -> None:
        """Refuse, on all ranks alike, weights that leave a group without a mean."""
        try:
            self._checked("weights", checks.averages, group, weights, participants)
        except RankFailed as error:
            error.agreed = True
            raise

    def check_agreement(self, digests: Floats) -> None:
        """Refuse, on rank 0, participants that differ between ranks; `digests` are of what each computed."""
        others = np.flatnonzero(digests != digests[0])
        if len(others):
            text = f"gave rank {others[0]} other clients than rank 0: it must depend on its arguments alone"
            raise self._failed("participants", text)

    def update(
        self, model: npt.NDArray[np.float32], mean: Floats, num_clients: int
    ) -> npt.NDArray[np.float32]:
        """See `Algorithm.update`."""
        found = self._call("update", model, mean, num_clients)
        return self._checked("update", checks.model, found, len(model))

    def aggregate(self, rows: npt.NDArray[np.float32], weights: Ints) -> Floats:
        """See `RowAggregate.aggregate`."""
        found = self._call("aggregate", rows, weights)
        return self._checked("aggregate", checks.mean, found, rows.shape[1])

    def group(self, seed: int, round: int, reports: Bytes) -> Ints:
        """See `Algorithm.group`."""
        found = self._call("group", seed, round, reports)
        return self._checked("group", checks.groups, found, self._num_clients)

    def found(self) -> dict[str, npt.NDArray[Any]]:
        """See `Algorithm.found`."""
        found = self._call("found")
        return self._checked("found", checks.found, found, self.fields(self._num_clients), self._num_clients)

    def check_fields(self, given: Collection[str]) -> None:
        """Refuse a round's row that lacks what the algorithm's record fields promise."""
        for field in self.fields(self._num_clients):
            if field.name not in given:
                raise self._failed("found", f'gave no "{field.name}", which fields() names')

    def warm_up(self) -> None:
        """See `Algorithm.warm_up`."""
        self._call("warm_up")

    def observe(self, reports: Mapping[str, Floats]) -> None:
        """See `Algorithm.observe`; what is recorded of the reports cannot be changed there."""
        self._call("observe", _read_only(reports))

    def suspects(self, round: int, group: Ints, reports: Mapping[str, Floats]) -> list[int]:
        """See `Algorithm.suspects`."""
        found = self._call("suspects", round, group.copy(), _read_only(reports))
        took_part = ~np.isnan(reports["delta_norm"])
        return self._checked("suspects", checks.suspects, found, group, took_part)

    @property
    def criterion_is_weighted(self) -> bool:
        """See `Algorithm.criterion_is_weighted`."""
        answer = self._call("criterion_is_weighted")
        return self._checked("criterion_is_weighted", checks.yes_or_no, answer)

    def is_due(self, mean_norm: float) -> bool:
        """See `Algorithm.is_due`."""
        return self._checked("is_due", checks.yes_or_no, self._call("is_due", mean_norm))

    def divide(self, members: Ints, rows: npt.NDArray[np.float32]) -> Division:
        """See `Algorithm.divide`."""
        found = self._call("divide", members.copy(), rows)
        return self._checked("divide", checks.division, found, members)

    def after_splits(self) -> None:
        """See `Algorithm.after_splits`."""
        self._call("after_splits")

    def fields(self, num_clients: int) -> tuple[Field, ...]:
        """See `Algorithm.fields`."""

        def ask() -> tuple[Field, ...]:
            return self._checked("fields", checks.fields, self._call("fields", num_clients))

        return self._once(("fields",), ask)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """See `Algorithm.state`."""
        return self._checked("state", checks.state, self._call("state"))

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """See `Algorithm.restore`."""
        self._call("restore", arrays)


def _read_only(reports: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return views that cannot be written to."""
    views = {name: values.view() for name, values in reports.items()}
    for view in views.values():
        view.flags.writeable = False
    return views
