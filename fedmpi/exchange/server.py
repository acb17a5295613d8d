"""The server when a round is reported, as `Algorithm.decide` sees it: `fedmpi.algorithms.program.Server`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.program import Floats, Ints, Request
from fedmpi.client.layouts import MessageLayout
from fedmpi.comm import reductions
from fedmpi.exchange.messages import Gathered
from fedmpi.programs import hook_checks as checks
from fedmpi.programs.hook_checks import Breach
from fedmpi.programs.hooks import Hooks

_COLUMNS = ("train_loss", "steps", "delta_norm", "gradient_norm")
"""Of the training table, those that a server's program sees."""

_VERBS = {"means": "means", "weighted means": "means", "rows": "rows", "parameters": "rows"}
"""What `asks` must have for each kind of request."""


@dataclass(frozen=True)
class Known:
    """What a server's program knows before round 1.

    Attributes
    ----------
    seed, lr, domains
        See `program.Server`.
    algorithm : Hooks
    sent, tells : MessageLayout
        What participants send, and what all clients get.
    samples, weights : int64 [clients]
        Training examples, and what the algorithm makes of them.
    trained, size : int
        Shared parameters, and elements of an update.
    model : callable or None
        Returns the model of a group, on rank 0.
    """

    seed: int
    lr: float
    algorithm: Hooks
    sent: MessageLayout
    tells: MessageLayout
    samples: Ints
    weights: Ints
    domains: tuple[str, ...] | None
    trained: int
    size: int
    model: Callable[[int], npt.NDArray[np.float32]] | None = None


class Deciding:
    """What an algorithm decides in a round.

    Attributes
    ----------
    weighted, divisor : float64 [clients]
        Weight of each participant, and at place g what the sum of group g is divided by.
    mixed : float64 [k, k] or None
        Weights of the participants' models in each other's next one.
    moves : dict of int to (float64 [shared], int)
        What the models of groups move by, and the updates behind it.
    told : dict of str to float32 [*]
    recorded : dict of str to array
        Values of the algorithm's own fields.

    Parameters
    ----------
    known : Known
    round : int
        0-based.
    gathered : Gathered
        The training table.
    group : int64 [clients]
    participants : int64 [k]
    """

    def __init__(self, known: Known, round: int, gathered: Gathered, group: Ints, participants: Ints) -> None:
        self._known, self._given = known, (known, round, gathered, group, participants)
        self._algorithm, self._gathered, self._tells = known.algorithm, gathered, known.tells
        self.trained, self._size, self.domains = known.trained, known.size, known.domains
        self.seed, self.round, self.lr = known.seed, round, known.lr
        self._participants, self._group = participants.copy(), group.copy()
        self.samples, self.weights = known.samples.copy(), known.weights.copy()
        self.weighted, self.divisor = np.zeros(len(group)), np.ones(len(group))
        self.mixed: Floats | None = None
        self.moves: dict[int, tuple[Floats, int]] = {}
        self.told: dict[str, npt.NDArray[np.float32]] = {}
        self.recorded: dict[str, npt.NDArray[Any]] = {}
        names = (*_COLUMNS, *known.algorithm.numbers)
        self.reports: Mapping[str, Floats] = {name: gathered[name].copy() for name in names}
        flags = gathered.flags.reshape(len(group), -1)[participants]
        self.messages: Mapping[str, npt.NDArray[Any]] = known.sent.read(flags)

    @property
    def participants(self) -> Ints:
        """See `program.Server`; a copy."""
        return self._participants.copy()

    @property
    def group(self) -> Ints:
        """See `program.Server`; a copy."""
        return self._group.copy()

    def groups(self) -> list[Ints]:
        """See `program.Server`."""
        of = self._group[self._participants]
        return [self._participants[of == number] for number in np.unique(of)]

    def model(self, members: Any) -> npt.NDArray[np.float32]:
        """See `program.Server`; a copy."""
        self._allowed("moves")
        group = int(self._group[checks.one_of(members, self.groups())[0]])
        assert self._known.model is not None  # a run has it
        return self._known.model(group).copy()

    def means(self, groups: Any, *, weighted: bool = True) -> Request:
        """See `program.Server`."""
        return self._request("weighted means" if weighted else "means", groups)

    def rows(self, clients: Any, *, parameters: bool = False) -> Request:
        """See `program.Server`."""
        return self._request("parameters" if parameters else "rows", clients)

    def regroup(self, group: Any) -> None:
        """See `program.Server`."""
        self._allowed("groups")
        self._refuse_late()
        self._group = checks.groups(group, len(self._group))

    def split(self, parts: Any) -> None:
        """See `program.Server`."""
        self._allowed("splits")
        self._refuse_late()
        for part in checks.parts(parts, self.groups())[1:]:
            free = np.setdiff1d(np.arange(len(self._group)), self._group)
            self._group[part] = free[0]

    def weigh(self, members: Any, weights: npt.ArrayLike, divisor: float) -> None:
        """See `program.Server`."""
        self._allowed("weights")
        members = checks.one_of(members, self.groups())
        found, divisor = checks.round_weights(np.asarray(weights), divisor, len(members))
        self.weighted[members], self.divisor[self._group[members[0]]] = found, divisor

    def mix(self, weights: Any) -> Floats:
        """See `program.Server`."""
        self._allowed("mixes")
        self.mixed = checks.client_weights(weights, len(self._participants))
        return self.mixed.copy()

    def move(self, members: Any, step: Any) -> None:
        """See `program.Server`."""
        self._allowed("moves")
        group = int(self._group[checks.one_of(members, self.groups())[0]])
        found = checks.array(step, "float64", (self._size,), "moved a model by")
        self.moves[group] = found.copy(), len(members)

    def nothing(self, request: Request) -> Any:
        """Return the answer to a request for nothing."""
        if "means" in request.kind:
            return {}
        return np.empty((0, self.trained if request.kind == "parameters" else self._size), np.float32)

    def blend(self, rows: npt.NDArray[np.float32]) -> None:
        """Have each participant's group, of it alone, move by its mean of these rows, float32 [k, shared]."""
        assert self.mixed is not None
        for client, own in zip(self._participants, self.mixed, strict=True):
            mean = np.zeros(self._size)
            for other in np.flatnonzero(own):
                mean += own[other] * rows[other].astype(np.float64)
            self.moves[int(self._group[client])] = mean, len(self._participants)

    def record(self, name: str, values: Any) -> None:
        """See `program.Server`."""
        found = checks.field_values({name: values}, self._algorithm.fields(), len(self._group))
        self.recorded |= {name: array.copy() for name, array in found.items()}

    def tell(self, name: str, array: Any) -> None:
        """See `program.Server`."""
        self.told[name] = self._tells.checked(name, array).astype(np.float32)

    def again(self) -> Deciding:
        """Return the same before anything was decided."""
        return Deciding(*self._given)

    @property
    def made(self) -> dict[str, Any]:
        """All that was decided."""
        names = ("group", "weighted", "divisor", "mixed", "moves", "told", "recorded")
        return {name: getattr(self, name) for name in names}

    def _allowed(self, decision: str) -> None:
        if decision not in self._algorithm.decides:
            raise Breach(f'decided {decision}: `decides` must have "{decision}"')

    def _refuse_late(self) -> None:
        if self.moves or self.weighted.any():
            raise Breach("set groups after it moved or weighed some: call regroup or split before")

    def refuse_undeclared(self, request: Request) -> None:
        """Raise Breach for a request that the class does not declare, or of what is not there."""
        self._request(request.kind, request.places)

    def _request(self, kind: Any, places: Any) -> Request:
        verb = _VERBS.get(kind) if isinstance(kind, str) else None
        if verb is None:
            raise Breach(f"asked for {kind!r}: yield what a verb returns, such as server.rows(clients)"[:120])
        if verb not in self._algorithm.asks:
            raise Breach(f'asked for {verb}: `asks` must have "{verb}"')
        if verb == "means":
            return Request(kind, checks.some(places, self._group[self._participants], "group"))
        return Request(kind, checks.some(places, self._participants, "client"))

    def check(self) -> None:
        """Raise Breach where something that the class declares was not decided."""
        decides = self._algorithm.decides
        left = self.groups() if decides & {"weights", "moves"} and "mixes" not in decides else []
        left = [each for each in left if int(self._group[each[0]]) not in self.moves]
        if "weights" in decides and (idle := [each for each in left if not self.weighted[each].any()]):
            raise Breach(
                f"weighed nobody of the group of client {idle[0][0]}: call server.weigh for each group"
            )
        if decides & {"weights", "moves"} == {"moves"} and left:
            raise Breach(f"moved no model of the group of client {left[0][0]}: call server.move for each")
        if "mixes" in decides and self.mixed is None:
            raise Breach("mixed nothing: call server.mix")
        if missing := self._tells.messages.keys() - self.told.keys():
            raise Breach(f"told no {sorted(missing)[0]}: call server.tell for it")

    def exponents(self, weights: Floats | Ints | None) -> Ints:
        """Return bounds of the weighted deltas by group, int64 [clients].

        Parameters
        ----------
        weights : [clients] or None
            Where the algorithm weighs in each round; None: the reports bound deltas times fixed weights.
        """
        exponent = np.full(len(self._group), reductions.ZERO_EXPONENT, np.int64)
        bounds = np.nan_to_num(self._gathered["exponent"][self._participants]).astype(np.int64)
        if weights is not None:
            own = weights[self._participants]
            moves = (bounds != reductions.ZERO_EXPONENT) & (own > 0)
            bounds = np.where(moves, bounds + np.frexp(own)[1], reductions.ZERO_EXPONENT)
        np.maximum.at(exponent, self._group[self._participants], bounds)
        return exponent
