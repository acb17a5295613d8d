"""What a rank's participants send: attacks and clipping change it between training and averages."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fedmpi.client.deltas import Row, on_host
from fedmpi.client.state import two_norm
from fedmpi.client.training import TRAINING, Trained
from fedmpi.comm import reductions

_NORM, _EXPONENT, _FINITE = (TRAINING.index(name) for name in ("delta_norm", "exponent", "finite"))


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

    def __init__(
        self,
        trained: Trained,
        places: dict[int, int],
        size: int,
        received: Callable[[int], Row] | None,
        heaviest: Callable[[int], int],
        lost: Collection[int] = (),
    ) -> None:
        self._trained, self._places, self._size = trained, places, size
        self._received, self._heaviest, self.lost = received, heaviest, lost

    def clients(self) -> list[int]:
        """Return the participants that this rank hosts, ascending."""
        return sorted(self._trained.deltas)

    def change(self, client: int) -> Row:
        """Return a client's update of the parameters, float32 [size]."""
        sent: Row = on_host(self._trained.deltas[client])[: self._size]
        return sent if self._received is None else sent - self._received(client)[: self._size]

    def replace(self, client: int, change: npt.NDArray[np.floating]) -> None:
        """Have a client send another update of the parameters, and report what belongs to it."""
        change = change.astype(np.float32)
        kept = self._trained.deltas[client]
        whole = on_host(kept).copy()
        sent = change if self._received is None else self._received(client)[: self._size] + change
        whole[: self._size] = sent
        self._trained.deltas[client] = (
            torch.as_tensor(whole, device=kept.device) if isinstance(kept, Tensor) else whole
        )
        norm = two_norm(torch.from_numpy(change))
        finite = bool(np.isfinite(norm) and np.isfinite(whole).all())
        row = self._trained.rows[self._places[client]]
        row[_FINITE] = finite and row[_FINITE] == 1.0
        exponent = reductions.weighted_exponent(whole, self._heaviest(client)) if finite else 0
        for column, value in ((_NORM, norm), (_EXPONENT, exponent)):
            if not np.isnan(row[column]):  # NaN: the reduction keeps it secret
                row[column] = value
