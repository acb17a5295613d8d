"""Who drops out of a round, and at which step: the same on every rank."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from fedmpi import seeds
from fedmpi.algorithms.recorded import field
from fedmpi.case.reductions import DropoutOptions
from fedmpi.errors import BadInput
from fedmpi.store.schema import Field

Ints = npt.NDArray[np.int64]


class Step(IntEnum):
    """The step before which a client drops out, in the order of a round."""

    TRAINING = 1
    SHARES = 2
    UPLOAD = 3
    ANSWERS = 4
    NEVER = 5


_DRAWN = (Step.SHARES, Step.UPLOAD, Step.ANSWERS)
"""Steps of `step = "any"`: those of a secure sum."""

_STEP = "step before which the client dropped out: 1 training, 2 shares, 3 upload, 4 answers; 0: none"
_LEFT = "updates in the sum of the client's group; 0: the group has no sum in this round"
FIELDS = (
    field("dropped_out", _STEP, dtype="u1"),
    field("survivors", _LEFT, dtype="i4"),
    field("aborted_sums", "groups with participants and no sum", ("round",), "i4"),
)
"""What the record of a run with dropouts holds beside its other fields."""


class Dropouts:
    """Draws the participants that drop out.

    A draw depends on the run's seed, the round and the client alone.

    Parameters
    ----------
    options : DropoutOptions
    seed : int
        Of the run.
    num_clients : int

    Raises
    ------
    BadInput
        The schedule names a client that there is not.
    """

    def __init__(self, options: DropoutOptions, seed: int, num_clients: int) -> None:
        self._options, self._seed, self._num_clients = options, seed, num_clients
        self._scheduled = {
            (each.round - 1, client): Step[each.step.upper()]
            for each in options.schedule
            for client in each.clients
        }
        for _, client in self._scheduled:
            if not 0 <= client < num_clients:
                raise BadInput(
                    f"reduction.dropouts.schedule: there is no client {client} of {num_clients}, from 0"
                )

    @property
    def possible(self) -> bool:
        """Whether any client may drop out."""
        return bool(self._options.steps)

    @property
    def fields(self) -> tuple[Field, ...]:
        """Fields of the record."""
        return FIELDS if self.possible else ()

    def of(self, round: int) -> Ints:
        """Return the `Step` before which each client drops out of a round from 0, int64 [clients]."""
        drawn = [self._of(round, client) for client in range(self._num_clients)]
        return np.array(drawn, np.int64)

    def _of(self, round: int, client: int) -> Step:
        if (round, client) in self._scheduled:
            return self._scheduled[round, client]
        if not self._options.probability:
            return Step.NEVER
        leaves, which = seeds.words(seeds.key(self._seed, seeds.Purpose.LEAVING, round, client), 2).tolist()
        if leaves >= self._options.probability * 2.0**64:
            return Step.NEVER
        if self._options.step == "any":
            return _DRAWN[which % len(_DRAWN)]
        return Step[self._options.step.upper()]


def rows(
    steps: Ints, participants: Ints, group: Ints, survivors: dict[int, int]
) -> dict[str, npt.NDArray[np.generic]]:
    """Return a round's values of `FIELDS`.

    Parameters
    ----------
    steps, group : int64 [clients]
        Of `Dropouts.of`; the clients' groups after the round.
    participants : int64 [k]
    survivors : dict of int to int
        Updates in the sum of each group with participants.
    """
    dropped = np.zeros(len(steps), np.uint8)
    dropped[participants] = np.where(steps == Step.NEVER, 0, steps)[participants]
    return {
        "dropped_out": dropped,
        "survivors": np.array([survivors.get(int(number), 0) for number in group], np.int32),
        "aborted_sums": np.array(sum(count == 0 for count in survivors.values()), np.int32),
    }


def lost_sums(steps: Ints, participants: Ints, group: Ints, survivors: dict[int, int]) -> list[str]:
    """Return a line for each group that has no sum.

    Parameters
    ----------
    steps, group : int64 [clients]
        Of `Dropouts.of`; the clients' groups.
    participants : int64 [k]
    survivors : dict of int to int
        Updates in the sum of each group with participants.
    """
    lines = []
    for number in (each for each, count in survivors.items() if not count):
        last = steps[participants[group[participants] == number]]
        sent, answered = (int(np.sum(last > step)) for step in (Step.UPLOAD, Step.ANSWERS))
        lines.append(
            f"{sent} of {len(last)} clients of group {number} sent updates, {answered} stayed to the end: "
            "no sum, its model stays as it is"
        )
    return lines
