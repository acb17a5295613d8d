"""The link of compression: updates become what is decoded of them, and clients keep what was left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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

RESIDUAL, BASIS, ESTIMATE = "residual", "basis", "estimate"

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
        self._left_out: dict[int, Row] = {}

    @classmethod
    def state(cls, case: Case) -> tuple[str, ...]:
        """Return the names of what a client keeps, zero before its first round: residual and basis.

        With a topology it is the estimate of its model that others have (`exchange.gossip`).
        """
        options = case.compression
        if case.topology.gossips:
            return () if options.name == "none" else (ESTIMATE,)
        return (*((RESIDUAL,) if options.residual else ()), *((BASIS,) if options.pooled else ()))

    def nbytes(self, size: int, nbytes: int) -> int:
        """Return the bytes of an update of `size` parameters."""
        return nbytes if self._codes is None else self._codes.compressor.nbytes

    @property
    def received_bytes(self) -> int:
        """Bytes that each client gets beside its model."""
        return 0 if self._codes is None else self._codes.compressor.received_bytes

    def alter(self, round: int, participants: Ints, updates: Updates) -> None:
        """Compress the updates, and set aside what was left out until `settle`.

        An update that is not finite ends the run.
        """
        if self._codes is None:
            return
        compressor, found = self._codes.compressor, dict[int, Row]()
        for client in updates.clients():
            update, residual = updates.change(client), self._kept[client].get(RESIDUAL)
            if residual is not None:
                with np.errstate(over="ignore"):  # what is then not finite ends the run
                    update = update + on_host(residual)[: len(update)]
            if np.isfinite(update).all():
                found[client] = update
            else:
                updates.replace(client, update)
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
            if RESIDUAL in self._kept[client]:
                self._left_out[client] = update - decoded

    def settle(self, arrived: Collection[int]) -> None:
        """Have those whose updates are in a mean keep what was left out; the others keep what they had."""
        for client, row in self._left_out.items():
            if client in arrived:
                self._kept[client][RESIDUAL][: len(row)] = torch.from_numpy(row)
        self._left_out = {}

    def learn(self, coefficients: Row) -> None:
        """Have all hosted clients keep the mean coefficients of a round, where the next basis begins."""
        for kept in self._kept.values():
            kept[BASIS][: len(coefficients)] = torch.from_numpy(coefficients)

    def _take_basis(self, compressor: Linear) -> None:
        """Go on from the basis that the hosted clients keep, zero before the first sum."""
        for kept in self._kept.values():
            if BASIS in kept:
                compressor.begin(on_host(kept[BASIS]))
            return
