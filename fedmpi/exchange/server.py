"""The server when a round is reported, as `Algorithm.decide` sees it: `fedmpi.algorithms.program.Server`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.client.message_layout import MessageLayout
from fedmpi.comm import reductions
from fedmpi.exchange.messages import Gathered
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hook_checks import Breach
from fedmpi.programs.hooks import Hooks

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_COLUMNS = ("train_loss", "steps", "delta_norm", "gradient_norm")
"""Of the training table, those that a server's program sees."""


class Deciding:
    """What an algorithm decides in a round.

    Attributes
    ----------
    weighted, divisor : float64 [clients]
        Weight of each participant, and at place g what the sum of group g is divided by.
    mixed : float64 [k, k] or None
        Weights of the participants' models in each other's next one.
    told : dict of str to float32 [*]
    recorded : dict of str to array
        Values of the algorithm's own fields.

    Parameters
    ----------
    case : Case
    algorithm : Hooks
    layouts : (MessageLayout, MessageLayout)
        Of what participants send, and of what all clients get.
    round : int
        0-based.
    gathered : Gathered
        The training table.
    group, samples, weights : int64 [clients]
    participants : int64 [k]
    """

    def __init__(
        self,
        case: Case,
        algorithm: Hooks,
        layouts: tuple[MessageLayout, MessageLayout],
        round: int,
        gathered: Gathered,
        group: Ints,
        participants: Ints,
        samples: Ints,
        weights: Ints,
    ) -> None:
        self._given = (case, algorithm, layouts, round, gathered, group, participants, samples, weights)
        self._algorithm, self._gathered, (sent, self._tells) = algorithm, gathered, layouts
        self.seed, self.round, self.lr = case.seed, round, case.optimizer.lr
        self.participants, self.group = participants.copy(), group.copy()
        self.samples, self.weights = samples.copy(), weights.copy()
        self.weighted, self.divisor = np.zeros(len(group)), np.ones(len(group))
        self.mixed: Floats | None = None
        self.told: dict[str, npt.NDArray[np.float32]] = {}
        self.recorded: dict[str, npt.NDArray[Any]] = {}
        names = (*_COLUMNS, *algorithm.numbers)
        self.reports: Mapping[str, Floats] = {name: gathered[name].copy() for name in names}
        flags = gathered.flags.reshape(len(group), -1)[participants]
        self.messages: Mapping[str, npt.NDArray[Any]] = sent.read(flags)

    def groups(self) -> list[Ints]:
        """See `program.Server`."""
        of = self.group[self.participants]
        return [self.participants[of == number] for number in np.unique(of)]

    def regroup(self, group: Any) -> None:
        """See `program.Server`."""
        self._allowed("groups")
        self.group = checks.groups(group, len(self.group))

    def weigh(self, members: Any, weights: npt.ArrayLike, divisor: float) -> None:
        """See `program.Server`."""
        self._allowed("weights")
        found, divisor = checks.round_weights(np.asarray(weights), divisor, len(members))
        self.weighted[members], self.divisor[self.group[members[0]]] = found, divisor

    def mix(self, weights: Any) -> None:
        """See `program.Server`."""
        self._allowed("means")
        self.mixed = checks.client_weights(weights, len(self.participants))

    def record(self, name: str, values: Any) -> None:
        """See `program.Server`."""
        found = checks.field_values({name: values}, self._algorithm.fields(), len(self.group))
        self.recorded |= found

    def tell(self, name: str, array: Any) -> None:
        """See `program.Server`."""
        self.told[name] = self._tells.checked(name, array).astype(np.float32)

    def again(self) -> Deciding:
        """Return the same before anything was decided."""
        return Deciding(*self._given)

    @property
    def made(self) -> dict[str, Any]:
        """All that was decided."""
        names = ("group", "weighted", "divisor", "mixed", "told", "recorded")
        return {name: getattr(self, name) for name in names}

    def _allowed(self, decision: str) -> None:
        if decision not in self._algorithm.decides:
            raise Breach(f'decided {decision}: `decides` must have "{decision}"')

    def check(self) -> None:
        """Raise Breach where something that the class declares was not decided."""
        decides = self._algorithm.decides
        groups = self.groups() if "weights" in decides else []
        if idle := [members for members in groups if not self.weighted[members].any()]:
            raise Breach(
                f"weighed nobody of the group of client {idle[0][0]}: call server.weigh for each group"
            )
        if "means" in decides and self.mixed is None:
            raise Breach("mixed nothing: call server.mix")
        if missing := self._tells.messages.keys() - self.told.keys():
            raise Breach(f"told no {sorted(missing)[0]}: call server.tell for it")

    def exponents(self) -> Ints:
        """Return bounds of the weighted deltas by group, int64 [clients]; of deltas alone without weights."""
        exponent = np.full(len(self.group), reductions.ZERO_EXPONENT, np.int64)
        bounds = np.nan_to_num(self._gathered["exponent"][self.participants]).astype(np.int64)
        if "weights" in self._algorithm.decides:
            own = self.weighted[self.participants]
            moves = (bounds != reductions.ZERO_EXPONENT) & (own > 0)
            bounds = np.where(moves, bounds + np.frexp(own)[1], reductions.ZERO_EXPONENT)
        np.maximum.at(exponent, self.group[self.participants], bounds)
        return exponent
