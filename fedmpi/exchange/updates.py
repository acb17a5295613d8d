"""What a rank's participants send: attacks and clipping change it between training and averages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.client.deltas import Row, on_host
from fedmpi.client.state import two_norm
from fedmpi.client.training import TRAINING, Trained
from fedmpi.comm import reductions

_NORM, _EXPONENT, _FINITE = (TRAINING.index(name) for name in ("delta_norm", "exponent", "finite"))


@dataclass(frozen=True)
class Updates:
    """The updates of a round's participants that this rank hosts; running statistics are left alone.

    Parameters
    ----------
    trained : Trained
        Changed in place.
    places : dict of int to int
        Row of each hosted client.
    size : int
        Shared parameters, which come before all else that is sent.
    received : callable or None
        The model [shared] that a client got, where `trained` holds models; else None.
    heaviest : callable
        What a client's update is multiplied by, at most.
    lost : collection of int
        Clients whose updates will not arrive.
    """

    trained: Trained
    places: Mapping[int, int]
    size: int
    received: Callable[[int], Row] | None
    heaviest: Callable[[int], int]
    lost: Collection[int] = ()

    def clients(self) -> list[int]:
        """Return the participants that this rank hosts, ascending."""
        return sorted(self.trained.deltas)

    def change(self, client: int) -> Row:
        """Return a client's update of the parameters, float32 [size]."""
        sent: Row = on_host(self.trained.deltas[client])[: self.size]
        return sent if self.received is None else sent - self.received(client)[: self.size]

    def replace(self, client: int, change: npt.NDArray[np.floating], largest: float = 0.0) -> None:
        """Have a client send another update of the parameters, and report what belongs to it.

        `largest` is the largest magnitude of what is summed in its place, if anything is.
        """
        change = change.astype(np.float32)
        kept = self.trained.deltas[client]
        whole = on_host(kept).copy()
        sent = change if self.received is None else self.received(client)[: self.size] + change
        whole[: self.size] = sent
        self.trained.deltas[client] = (
            torch.as_tensor(whole, device=kept.device) if isinstance(kept, Tensor) else whole
        )
        norm = two_norm(torch.from_numpy(change))
        finite = bool(np.isfinite(norm) and np.isfinite(whole).all())
        row = self.trained.rows[self.places[client]]
        row[_FINITE] = finite and row[_FINITE] == 1.0
        bounds, heaviest = np.append(whole, np.float32(largest)), self.heaviest(client)
        exponent = reductions.weighted_exponent(bounds, heaviest) if finite else 0
        for column, value in ((_NORM, norm), (_EXPONENT, exponent)):
            if not np.isnan(row[column]):  # NaN: the reduction keeps it secret
                row[column] = value
