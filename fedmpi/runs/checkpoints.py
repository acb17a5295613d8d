"""Checkpoints of a run: every rank writes and reads the states of the clients that it hosts."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.comm.world import World
from fedmpi.errors import BadInput, FedmpiError
from fedmpi.store import checkpoint
from fedmpi.store.checkpoint import Manifest, Meta, Part, Unfit

Arrays = Mapping[str, npt.NDArray[Any]]
Row = npt.NDArray[np.float32]
CheckServer = Callable[[Meta, Arrays], None]

_LOG = logging.getLogger(__name__)
_PATIENCE_S = 10.0
"""A network file system may take so long to show on one host what another has made."""

_SHA256_BYTES = 32
"""Bytes of a file's digest, which a rank sends when its file is on disk."""


@dataclass(frozen=True)
class Saved:
    """What a run goes on from: rounds finished, states of hosted clients, on rank 0 the server's arrays."""

    rounds: int
    states: Mapping[int, Row]
    server: Arrays | None


class Checkpoints:
    """A run's checkpoints in one folder, which all ranks write into.

    No state of a client passes another rank: each writes a file of its own and says so to rank 0, which
    then names all files in a manifest.

    Parameters
    ----------
    folder : Path
        Of the run; exists on rank 0.
    world : World
    token : str
        Unlike that of any other process; the same on all ranks.
    """

    def __init__(self, folder: Path, world: World, token: str) -> None:
        self._folder, self._world, self._token = folder / checkpoint.FOLDER, world, token
        self._server: Arrays = {}

    def open(self) -> None:
        """See that every rank can write where rank 0 reads (a collective call).

        Raises
        ------
        BadInput
            On every rank: one cannot write there, or has another file system there.
        """
        try:
            host = self._world.agree(self._make)
            self._world.together(partial(self._leave_trace, host))
            self._world.agree(self._look_for_traces)
        except FedmpiError:
            if self._world.is_root:
                self._remove_traces()
                with suppress(OSError):
                    self._folder.rmdir()
            raise

    def _make(self) -> str:
        """Make the folder and return this host's name."""
        try:
            self._folder.mkdir(exist_ok=True)
        except OSError as error:
            raise BadInput(f"{self._folder}: cannot write there ({error.strerror})") from error
        return socket.gethostname()

    def _leave_trace(self, root_host: str) -> None:
        rank = self._world.rank
        me = f"rank {rank} on {socket.gethostname()}"
        if rank and not _comes(self._folder):
            raise self._not_shared(f"rank 0 on {root_host} made it and {me} does not see it")
        try:
            self._path(0, rank).touch()
        except OSError as error:
            raise BadInput(
                f"{self._folder}: {me} cannot write there ({error.strerror}), but every rank writes the "
                "checkpoint of its clients; choose another folder with --out"
            ) from error

    def _look_for_traces(self) -> None:
        for rank in range(self._world.size):
            if not _comes(self._path(0, rank)):
                raise self._not_shared(f"what rank {rank} writes, rank 0 does not see")
        self._remove_traces()
        for name in checkpoint.NAMES:
            if (self._folder / name).is_dir():
                raise BadInput(f"{self._folder / name} is a folder, and must be a file: remove it")
        checkpoint.clear(self._folder)

    def _remove_traces(self) -> None:
        for rank in range(self._world.size):
            with suppress(OSError):
                self._path(0, rank).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove all of them."""
        checkpoint.remove(self._folder)

    def _not_shared(self, what: str) -> BadInput:
        return BadInput(
            f"{self._folder} is not on a file system that all ranks share ({what}); "
            "choose another folder with --out"
        )

    def find(
        self,
        num_clients: int,
        hosted: list[int],
        check: CheckServer,
        check_states: Callable[[Mapping[int, Row]], None],
    ) -> Saved | None:
        """Return the newest checkpoint that is whole and passes the checks; None if there is none.

        Others are passed over with a warning: the run starts from an older one or from its first round, and
        what it recomputes is compared with the record. A collective call.

        Parameters
        ----------
        num_clients : int
        hosted : list of int
            Clients of this rank.
        check : callable
            Raises `Unfit` for what is not this run's; called on rank 0 with the server's arrays.
        check_states : callable
            The same for the hosted clients' states; on every rank.
        """

        def read_states(manifest: Manifest) -> dict[int, Row]:
            states = checkpoint.read_states(self._folder, manifest, hosted)
            check_states(states)
            return states

        for name in checkpoint.NAMES:
            try:
                manifest = self._world.agree(partial(self._read_server, name, num_clients, check))
                if manifest is not None:
                    states = self._world.together(partial(read_states, manifest))
                    return Saved(manifest.meta.rounds, states, self._server if self._world.is_root else None)
            except Unfit as error:
                if self._world.is_root:
                    _LOG.warning("%s is passed over: %s", self._folder / name, error)
        return None

    def _read_server(self, name: str, num_clients: int, check: CheckServer) -> Manifest | None:
        """Read a manifest and the server's arrays, on rank 0."""
        manifest = checkpoint.read_manifest(self._folder, name, num_clients)
        if manifest is not None:
            self._server = checkpoint.read(self._folder, manifest.server)
            check(manifest.meta, self._server)
        return manifest

    def write_states(self, finished: int, states: Mapping[int, Row]) -> str:
        """Write this rank's file of the checkpoint after so many rounds; return its digest.

        Raises
        ------
        RunFailed
            It could not be written.
        """
        if not states:
            return "0" * 2 * _SHA256_BYTES
        sizes = np.array([len(state) for state in states.values()], np.int64)
        arrays = {"states": np.concatenate(list(states.values())), "sizes": sizes}
        return checkpoint.write(self._path(finished, self._world.rank), arrays)

    def _path(self, finished: int, rank: int | None) -> Path:
        return self._folder / checkpoint.file_name(self._token, finished, rank)

    def gather(self, digest: str) -> list[str] | None:
        """Gather the digests of the ranks' files at rank 0, when all are on disk (a collective call)."""
        word, counts = np.frombuffer(bytes.fromhex(digest), np.uint8), [_SHA256_BYTES] * self._world.size
        words = self._world.collectives.gatherv(word, counts, "checkpoint", patient=True)
        return None if words is None else [each.tobytes().hex() for each in words]

    def commit(
        self,
        meta: Meta,
        digests: list[str],
        hosts: npt.NDArray[np.int64],
        server: Arrays,
        confirm: Callable[[], None],
    ) -> None:
        """Write the server's file and name all files in a manifest; on rank 0.

        Parameters
        ----------
        meta : Meta
        digests : list of str
            Of each rank's file.
        hosts : int64 [clients]
            Rank of each client.
        server : mapping
            The server's arrays.
        confirm : callable
            Raises where the folder is not this run's any more.

        Raises
        ------
        RunFailed
            It could not be written; the former checkpoints are untouched.
        """
        path = self._path(meta.rounds, None)
        parts = [
            Part(file=self._path(meta.rounds, rank).name, sha256=digest, clients=clients)
            for rank, digest in enumerate(digests)
            if (clients := np.flatnonzero(hosts == rank).tolist())
        ]
        own = Part(file=path.name, sha256=checkpoint.write(path, server))
        checkpoint.save(self._folder, Manifest(meta=meta, server=own, parts=parts), confirm)


def _comes(path: Path) -> bool:
    """Return whether a file is there, or comes to be seen here in a while."""
    until = time.monotonic() + _PATIENCE_S
    while not path.exists():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
        with suppress(OSError):
            os.listdir(path.parent)  # has a network file system ask anew
    return True
