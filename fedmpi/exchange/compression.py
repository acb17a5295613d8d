"""The link of compression: updates become what is decoded of them, and clients keep what was left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fedmpi.case.schema import Case
from fedmpi.client.deltas import Row, on_host
from fedmpi.compression.base import Floats, Linear
from fedmpi.exchange.link import Ints, Link
from fedmpi.seeds import Purpose, key

if TYPE_CHECKING:  # what is refused before MPI starts must not import it
    from fedmpi.exchange.codes import Codes
    from fedmpi.exchange.updates import Updates

RESIDUAL, BASIS = "residual", "basis"

Mean = Callable[[Ints, dict[int, Row], int], Floats]


class Compression(Link):
    """Replaces updates by what the server decodes of them.

    Parameters
    ----------
    case : Case
    kept : mapping of client to dict of str to float32 [shared]
        What each hosted client keeps for the chain.
    codes : Codes or None
        Takes what travels; None: updates travel as they are.
    mean : callable
        Returns the mean of a vector of each participant on every rank, as `codes.mean_on_all`.
    """

    def __init__(
        self, case: Case, kept: Mapping[int, Mapping[str, Tensor]], codes: Codes | None, mean: Mean
    ) -> None:
        self._seed, self._kept, self._codes, self._mean = case.seed, kept, codes, mean

    @classmethod
    def state(cls, case: Case) -> tuple[str, ...]:
        """Return the names of what a client keeps, zero before its first round: residual and basis."""
        options = case.compression
        return (*((RESIDUAL,) if options.residual else ()), *((BASIS,) if options.pooled else ()))

    def nbytes(self, size: int, nbytes: int) -> int:
        """Return the bytes of an update of `size` parameters."""
        return nbytes if self._codes is None else self._codes.compressor.nbytes

    @property
    def received_bytes(self) -> int:
        """Bytes that each client gets beside its model."""
        return 0 if self._codes is None else self._codes.compressor.received_bytes

    def alter(self, round: int, participants: Ints, updates: Updates) -> None:
        """Compress the updates; a client whose update is lost keeps its residual as before the round.

        An update that is not finite, which ends the run, is left as it is.
        """
        if self._codes is None:
            return
        compressor, found = self._codes.compressor, dict[int, Row]()
        for client in updates.clients():
            update, residual = updates.change(client), self._kept[client].get(RESIDUAL)
            if residual is not None:
                update = update + on_host(residual)[: len(update)]
            if np.isfinite(update).all():
                found[client] = update
        self._codes.begin()
        if isinstance(compressor, Linear):
            self._take_basis(compressor)
            arriving = np.setdiff1d(participants, np.array([*updates.lost], np.int64))
            stream = key(self._seed, Purpose.COMPRESSION, round)
            arrives = {client: row for client, row in found.items() if client not in updates.lost}
            compressor.prepare(arrives, stream, partial(self._mean, arriving))
        for client, update in found.items():
            sent = compressor.encode(update, key(self._seed, Purpose.COMPRESSION, round, client))
            decoded, self._codes.sent[client] = compressor.decode(sent), sent
            updates.replace(client, decoded, compressor.largest(sent))
            residual = self._kept[client].get(RESIDUAL)
            if residual is not None and client not in updates.lost:
                residual[: len(update)] = torch.from_numpy(update - decoded)

    def learn(self, coefficients: Row) -> None:
        """Have all hosted clients keep the mean coefficients of a round, where the next basis begins."""
        for kept in self._kept.values():
            kept[BASIS][: len(coefficients)] = torch.from_numpy(coefficients)

    def _take_basis(self, compressor: Linear) -> None:
        """Go on from the basis that the hosted clients keep; from that of the start before the first sum."""
        for kept in self._kept.values():
            if BASIS in kept and kept[BASIS].any():
                compressor.begin(on_host(kept[BASIS]))
            return
