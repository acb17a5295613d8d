"""Compressed updates, and their residuals: what compression left out goes with the next update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

from fedmpi.case.schema import Case
from fedmpi.client.deltas import Row, on_host
from fedmpi.exchange.link import Ints, Link

if TYPE_CHECKING:  # what is refused before MPI starts must not import it
    from fedmpi.exchange.updates import Updates

RESIDUAL = "residual"


class Compressor:
    """Base of all compressors; this one sends an update as it is.

    Attributes
    ----------
    exact : bool
        Whether the server decodes the update itself.
    biased : bool
        Whether clients keep a residual (error feedback, Stich et al., "Sparsified SGD with memory", NeurIPS
        2018): a client adds it to its update, and keeps what the server did not decode of the sum.
    """

    exact: ClassVar[bool] = True
    biased: ClassVar[bool] = False

    def decoded(self, update: Row, round: int, client: int) -> Row:
        """Return what the server decodes of an update, float32 [shared]; random by round and client alone."""
        return update

    def nbytes(self, size: int) -> int:
        """Return the bytes that an update of so many parameters takes."""
        return 4 * size


def compressor_of(case: Case) -> Compressor:
    """Return a case's compressor."""
    return Compressor()


class Compression(Link):
    """Replaces updates by what the server decodes of them.

    Parameters
    ----------
    case : Case
    kept : mapping of client to dict of str to float32 [shared]
        What each hosted client keeps for the chain.
    """

    def __init__(self, case: Case, kept: Mapping[int, Mapping[str, Tensor]]) -> None:
        self._compressor, self._kept = compressor_of(case), kept

    @classmethod
    def state(cls, case: Case) -> tuple[str, ...]:
        """Return the names of what a client keeps: its residual, zero before its first round."""
        return (RESIDUAL,) if compressor_of(case).biased else ()

    def nbytes(self, size: int, nbytes: int) -> int:
        """Return the bytes of an update of `size` parameters."""
        return self._compressor.nbytes(size)

    def alter(self, round: int, participants: Ints, updates: Updates) -> None:
        """Compress the updates; a client whose update is lost keeps its residual as before the round."""
        if self._compressor.exact:
            return
        for client in updates.clients():
            update, residual = updates.change(client), self._kept[client].get(RESIDUAL)
            if residual is not None:
                update = update + on_host(residual)
            sent = self._compressor.decoded(update, round, client)
            updates.replace(client, sent)
            if residual is not None and client not in updates.lost:
                residual.copy_(torch.from_numpy(np.subtract(update, sent)))
