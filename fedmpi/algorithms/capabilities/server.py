"""What the server learns beside updates, and how it forms groups and means: hooks on rank 0."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedmpi.algorithms.base import Floats, Ints
from fedmpi.algorithms.capabilities.base import Capability, Reports

AGREEMENT = "domain_agreement"
"""Record field of algorithms that form their groups anew in every round; the engine fills it."""

CLIENT_WEIGHTS = "client_weights"
"""Record field of algorithms that make a model for each client; the engine fills it."""


@dataclass(frozen=True)
class Division:
    """A group divided: its parts, each int64, and the weights [k, k] by which it was done."""

    parts: tuple[Ints, ...]
    weights: Floats


class Splits(Capability):
    """Groups that split (GCFL). All hooks run on rank 0, before the averages of the round."""

    wants_rows: ClassVar[bool] = False
    """True: `split` needs the updates of the group, which travel to rank 0 then and only then."""

    def observe(self, reports: Reports) -> None:
        """Take note of a round's reports before it is averaged.

        Parameters
        ----------
        reports : mapping of str to float64 [clients]
            ``delta_norm`` and ``gradient_norm``; NaN for clients that sat out.
        """

    @abstractmethod
    def split_candidates(self, round: int, group: Ints, reports: Reports) -> list[int]:
        """Return the groups that may split in this round: the norm of their mean update decides.

        Parameters
        ----------
        round : int
        group : int64 [clients]
        reports : mapping of str to float64 [clients]
            As for `observe`.
        """

    @property
    def criterion_is_weighted(self) -> bool:
        """Whether that mean is weighted by training graphs."""
        return False

    @abstractmethod
    def should_split(self, mean_norm: float) -> bool:
        """Return whether a candidate whose mean update has this norm splits now."""

    @abstractmethod
    def split(self, members: Ints, rows: npt.NDArray[np.float32]) -> Division:
        """Return the parts of a group that splits.

        Parameters
        ----------
        members : int64 [k]
            Clients, ascending.
        rows : float32 [k, shared]
            Their updates if `wants_rows`, else [k, 0].
        """

    def after_splits(self) -> None:
        """Take note that at least one group was split in this round."""


class RowAggregate(Capability):
    """The updates of a group travel to rank 0, where `aggregate` takes the place of the mean (median, Krum).

    All groups are updated on rank 0. `Algorithm.weights` are handed on; what they mean is the algorithm's
    own matter.
    """

    @abstractmethod
    def aggregate(self, rows: npt.NDArray[np.float32], weights: Ints) -> Floats:
        """Return what a group's model moves by, float64 [shared].

        Parameters
        ----------
        rows : float32 [k, shared]
            Updates of the group's participants, ascending by client; their models, with `Regroups`.
        weights : int64 [k]
        """
