"""What ranks report in a round: one float64 vector per rank, columns by name; and a flag per test graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedmpi.comm.collectives import Collectives
from fedmpi.graphs.packed import gather_ranges, pointers

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TRAINING = (
    "samples",
    "steps",
    "train_loss",
    "train_accuracy",
    "delta_norm",
    "gradient_norm",
    "model_flops",
    "exponent",
    "finite",
    "wall_s",
    "cpu_s",
)
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
    """A gathered table: one row per client in client order, and one header per rank."""

    headers: Floats
    rows: Floats
    columns: tuple[str, ...]

    def __getitem__(self, column: str) -> Floats:
        """Return one column by client."""
        values: Floats = self.rows[:, self.columns.index(column)]
        return values


class ClientTable:
    """Gathers a header per rank and a row per client to rank 0 in one `Gatherv`.

    Counts and 53-bit integers travel exactly in float64.
    """

    def __init__(self, collectives: Collectives, hosts: Ints, columns: tuple[str, ...], header: int) -> None:
        self._collectives = collectives
        self._columns = columns
        self._header = header
        self._order = np.argsort(hosts, kind="stable")
        hosted = np.bincount(hosts, minlength=collectives.size)
        self._counts = [header + int(clients) * len(columns) for clients in hosted]

    def nbytes(self, rank: int) -> int:
        """Return the payload of one gather on `rank`."""
        return 8 * self._counts[rank]

    def gather(self, header: npt.ArrayLike, rows: Floats, *, counted: bool = False) -> Gathered | None:
        """Gather this rank's header and the rows of its clients, ascending by id; None away from rank 0."""
        part = np.concatenate([np.asarray(header, np.float64), rows.reshape(-1)])
        whole = self._collectives.gatherv(part, self._counts, counted=counted)
        if whole is None:
            return None
        width = len(self._columns)
        table = np.empty((len(self._order), width))
        headers, blocks = [], []
        for piece in np.split(whole, np.cumsum(self._counts)[:-1]):
            headers.append(piece[: self._header])
            blocks.append(piece[self._header :].reshape(-1, width))
        table[self._order] = np.concatenate(blocks)
        return Gathered(np.stack(headers), table, self._columns)


class FlagTable:
    """Gathers a flag (uint8) for every test graph to rank 0 in one `Gatherv`.

    Parameters
    ----------
    lengths : int64 [clients]
        Test graphs of each client.
    """

    def __init__(self, collectives: Collectives, hosts: Ints, lengths: Ints) -> None:
        self._collectives = collectives
        self._counts = np.bincount(hosts, weights=lengths, minlength=collectives.size).astype(int).tolist()
        arrival = np.argsort(hosts, kind="stable")
        starts = np.empty_like(lengths)
        starts[arrival] = pointers(lengths[arrival])[:-1]
        self._order = gather_ranges(starts, lengths)

    def gather(self, flags: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8] | None:
        """Gather the flags of this rank's clients, ascending by id; rank 0 gets all in client order."""
        whole = self._collectives.gatherv(flags, self._counts)
        return None if whole is None else whole[self._order]
