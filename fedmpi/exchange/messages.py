"""Tables that ranks report in a round: rows of float64 by client, columns by name, and flags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.comm.collectives import Collectives
from fedmpi.comm.seals import SEAL
from fedmpi.graphs.packed import gather_ranges, pointers

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EVALUATION = (
    "val_loss",
    "val_accuracy",
    "test_loss",
    "test_accuracy",
    "evaluation_flops",
    "evaluated",
    "digest_high",
    "digest_low",
)


@dataclass(frozen=True)
class Gathered:
    """A gathered table: a row and some flags per client in client order, and one header per rank."""

    headers: Floats
    rows: Floats
    flags: npt.NDArray[np.uint8]
    columns: tuple[str, ...]

    def __getitem__(self, column: str) -> Floats:
        """Return one column by client."""
        values: Floats = self.rows[:, self.columns.index(column)]
        return values


class ClientTable:
    """Gathers a header per rank, and a row and some flags per client, to rank 0 in one `Gatherv` of bytes.

    Counts and 53-bit integers travel exactly in float64.

    Parameters
    ----------
    collectives : Collectives
    hosts : int64 [clients]
        Rank of each client.
    columns : tuple of str
        Of a row.
    header : int
        Numbers of a header.
    flags : int64 [clients]
        Flags of each client.
    """

    def __init__(
        self, collectives: Collectives, hosts: Ints, columns: tuple[str, ...], header: int, flags: Ints
    ) -> None:
        self._collectives = collectives
        self._columns, self._header = columns, header
        self._order = np.argsort(hosts, kind="stable")
        hosted = np.bincount(hosts, minlength=collectives.size)
        self._floats = [header + int(clients) * len(columns) for clients in hosted]
        self._flags = np.bincount(hosts, flags, collectives.size).astype(int).tolist()
        starts = np.empty_like(flags)
        starts[self._order] = pointers(flags[self._order])[:-1]
        self._flag_order = gather_ranges(starts, flags)

    def nbytes(self, rank: int) -> int:
        """Return the payload of one gather on `rank`."""
        return 8 * self._floats[rank] + int(self._flags[rank]) + SEAL

    def gather(
        self,
        header: npt.ArrayLike,
        rows: Floats,
        flags: npt.NDArray[np.uint8],
        place: str,
        *,
        patient: bool = False,
        counted: bool = False,
    ) -> Gathered | None:
        """Gather a header and the clients' rows and flags at rank 0; None elsewhere.

        Parameters
        ----------
        header : float64 [header]
            This rank's numbers.
        rows : float64 [hosted clients, columns]
            Of the rank's clients, ascending by number.
        flags : uint8 [sum of the hosted clients' flags]
            Of the same clients, one after another.
        place, patient, counted
            As for `Collectives.gatherv`.
        """
        numbers = np.concatenate([np.asarray(header, np.float64), rows.reshape(-1)])
        part = np.concatenate([numbers.view(np.uint8), flags])
        sizes = [self.nbytes(rank) - SEAL for rank in range(self._collectives.size)]
        pieces = self._collectives.gatherv(part, sizes, place, patient=patient, counted=counted)
        if pieces is None:
            return None
        width = len(self._columns)
        table = np.empty((len(self._order), width))
        headers, blocks, tails = [], [], []
        for count, piece in zip(self._floats, pieces, strict=True):
            floats = piece[: 8 * count].copy().view(np.float64)
            headers.append(floats[: self._header])
            blocks.append(floats[self._header :].reshape(-1, width))
            tails.append(piece[8 * count :])
        table[self._order] = np.concatenate(blocks)
        return Gathered(np.stack(headers), table, np.concatenate(tails)[self._flag_order], self._columns)
