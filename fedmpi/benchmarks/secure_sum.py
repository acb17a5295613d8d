"""One secure sum of simulated clients, one after another: CPU seconds and bytes of every step."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fedmpi.comm.reductions import Fixed32
from fedmpi.errors import RunFailed
from fedmpi.secure.keys import KEY_BYTES, AgreementKey
from fedmpi.secure.neighbours import least_degree, shuffled
from fedmpi.secure.protocols import Client, LightSecAgg, SecAgg, SecureSum
from fedmpi.secure.roster import Roster

_CLIP = 1.0
_WORD_BYTES = 4
"""Of an uploaded element, whatever the type in which a server adds them."""

_CORRUPT = 0.05
_LEAST_DROPOUT = 0.1
"""SecAgg+'s ring is made for so many clients that work with the server, and at least so many dropouts."""

_MAJORITY, _MARGIN = 0.5, 0.1
"""SecAgg's threshold, a share of the clients, and how far it stays below those that do not drop out."""

_STAY, _PIECES = 0.7, 0.2
"""LightSecAgg's threshold, a share of the clients, and what it lies above that of the colluders."""

_ROUNDING = 0.01
"""Of a client: a threshold of all that stay is not to round up, nor the colluders down."""


@lru_cache
def _degree(clients: int, dropout: float) -> int:
    found = least_degree(clients, _CORRUPT, max(dropout, _LEAST_DROPOUT))
    return found.neighbours if found else 0


@dataclass(frozen=True)
class Setting:
    """A protocol, elements of a vector, clients, and the share of them that drops out before the upload."""

    protocol: str
    size: int
    clients: int
    dropout: float

    @property
    def gone(self) -> int:
        """Clients that drop out."""
        return int(self.dropout * self.clients)

    @property
    def degree(self) -> int:
        """Neighbours of a client in SecAgg+'s ring; 0: all others."""
        return _degree(self.clients, self.dropout) if self.protocol == "secagg+" else 0

    @property
    def title(self) -> str:
        """What the setting is called while it runs."""
        return f"{self.protocol}, {self.size} parameters, {self.clients} clients, {self.labels()['dropout']}"

    def labels(self) -> dict[str, str | int]:
        """Return what tells the setting from the others."""
        return {
            "protocol": self.protocol,
            "parameters": self.size,
            "clients": self.clients,
            "dropout": f"{100 * self.dropout:g} %",
            "neighbours": self.degree or self.clients - 1,
        }

    def make(self) -> SecureSum:
        """Return the protocol, its threshold low enough for the clients that stay."""
        if self.protocol == "lightsecagg":
            rounding = _ROUNDING / self.clients
            threshold = min(_STAY, 1 - self.gone / self.clients - rounding)
            return LightSecAgg(self.size, threshold, threshold - _PIECES + 2 * rounding)
        threshold = min(_MAJORITY, 1 - _MARGIN - self.dropout)
        return SecAgg(self.size, threshold, self.degree)


@dataclass
class Costs:
    """What a sum took.

    Attributes
    ----------
    client_s, server_s : dict
        CPU seconds by step: of a client, its mean; of the server.
    client_bytes : dict
        What a client sends by phase, its mean.
    server_bytes : float
        What the server receives.
    """

    client_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    server_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    client_bytes: dict[str, float] = field(default_factory=dict)
    server_bytes: float = 0.0


class Mailbox:
    """Sealed messages of one length, in a file: all of LightSecAgg's are gigabytes.

    Parameters
    ----------
    roster : Roster
    length : int
        Bytes of a message.
    """

    def __init__(self, roster: Roster, length: int) -> None:
        self._places = {client: place for place, client in enumerate(roster.members)}
        self._length = length
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="fedmpi-bench-")  # noqa: SIM115 (closed on exit)

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def post(self, sender: int, sealed: Mapping[int, bytes]) -> None:
        """Keep a client's messages."""
        for receiver, message in sealed.items():
            assert len(message) == self._length
            self._file.seek(self._offset(sender, receiver))
            self._file.write(message)

    def fetch(self, receiver: int, senders: Sequence[int]) -> dict[int, bytes]:
        """Return the messages to a client."""
        found = {}
        for sender in senders:
            self._file.seek(self._offset(sender, receiver))
            found[sender] = self._file.read(self._length)
        return found

    def _offset(self, sender: int, receiver: int) -> int:
        return (self._places[sender] * len(self._places) + self._places[receiver]) * self._length


def update(seed: int, client: int, size: int) -> npt.NDArray[np.float32]:
    """Return a client's update; `bench/secure/flower.py` makes the same."""
    return np.random.default_rng((seed, client)).normal(0, 0.1, size).astype(np.float32)


class Sum:
    """A sum from its keys to the unmasked vector.

    Who drops out is known beforehand here, so a client uploads and answers as soon as it has its
    neighbours' messages, and is gone. No more than one upload and one client's messages are held at a time.

    Parameters
    ----------
    setting : Setting
    seed : int
        Of the updates and of who drops out; keys and masks come from the operating system.
    """

    def __init__(self, setting: Setting, seed: int) -> None:
        self._setting, self._seed = setting, seed
        self._protocol = setting.make()
        self._roster = self._protocol.roster(b"bench", seed, 0, shuffled(range(setting.clients)))
        order = np.random.default_rng(seed).permutation(setting.clients)
        self._survivors = sorted(order[setting.gone :].tolist())
        self._reduction = Fixed32(float(setting.clients), _CLIP)
        self._costs = Costs()

    def run(self) -> Costs:
        """Return what the sum took.

        Raises
        ------
        RunFailed
            It is not the plain sum of the survivors' summands.
        """
        total = np.zeros(self._setting.size, self._protocol.dtype)
        plain = np.zeros(self._setting.size, np.int32)
        answers = {}
        with Mailbox(self._roster, self._protocol.sealed_bytes(self._roster)) as mailbox:
            clients, vaults = self._share(mailbox)
            for number in self._roster.members:
                client = clients.pop(number)
                sealed = mailbox.fetch(number, self._roster.neighbours[number])
                with self._of_client("shares"):
                    client.accept(sealed)
                if number in self._survivors:
                    self._upload(number, client, total, plain)
                    with self._of_survivor("answer"):
                        answers[number] = client.answer(self._survivors)
        server = self._protocol.server(self._roster, vaults)
        with self._of_server("unmask"):
            unmasked = server.unmask(total, self._survivors, answers)
        if not np.array_equal(unmasked, plain):
            raise RunFailed(f"bench secure: {self._setting.title}: the sum is not the plain one")
        self._count(vaults, answers)
        return self._costs

    def _share(self, mailbox: Mailbox) -> tuple[dict[int, Client], dict[int, bytes]]:
        """Make the clients and post what they offer each other; return them and what goes to the server."""
        clients, vaults = {}, {}
        with self._of_client("keys"):
            keys = {number: AgreementKey() for number in self._roster.members}
        public = {number: key.public for number, key in keys.items()}
        for number in self._roster.members:
            with self._of_client("keys"):
                clients[number] = self._protocol.client(number, keys.pop(number), public, self._roster)
            with self._of_client("shares"):
                sealed, vaults[number] = clients[number].offer()
            mailbox.post(number, sealed)
        return clients, vaults

    def _upload(
        self, number: int, client: Client, total: npt.NDArray[Any], plain: npt.NDArray[np.int32]
    ) -> None:
        """Add a client's masked summand to the server's sum, and the summand itself to the plain one."""
        vector = update(self._seed, number, self._setting.size)
        with self._of_survivor("upload"):
            summand = self._reduction.encode(vector, 1.0)
            masked = client.upload(summand)
        with self._of_server("add"):
            self._protocol.add(masked, total)
        plain += summand

    def _count(self, vaults: Mapping[int, bytes], answers: Mapping[int, bytes]) -> None:
        """Count the bytes that were sent."""
        sealed = self._protocol.sealed_bytes(self._roster)
        degree = sum(map(len, self._roster.neighbours.values())) / len(vaults)
        vault, answer = (sum(map(len, each.values())) / len(each) for each in (vaults, answers))
        upload = _WORD_BYTES * self._setting.size
        self._costs.client_bytes = {
            "offline": KEY_BYTES + degree * sealed + vault,
            "upload": upload,
            "answer": answer,
        }
        offline = (KEY_BYTES + vault) * len(vaults)
        self._costs.server_bytes = offline + (upload + answer) * len(answers)

    def _of_client(self, step: str) -> AbstractContextManager[None]:
        return _timed(self._costs.client_s, step, self._setting.clients)

    def _of_survivor(self, step: str) -> AbstractContextManager[None]:
        return _timed(self._costs.client_s, step, len(self._survivors))

    def _of_server(self, step: str) -> AbstractContextManager[None]:
        return _timed(self._costs.server_s, step, 1)


@contextmanager
def _timed(seconds: dict[str, float], step: str, parties: int) -> Iterator[None]:
    """Add the CPU seconds of what follows to a step, as the mean of so many parties."""
    start = time.process_time()
    yield
    seconds[step] += (time.process_time() - start) / parties


def load_code(protocols: Iterable[str]) -> None:
    """Run a small sum of each protocol, so that no measured one loads compiled code."""
    for protocol in protocols:
        Sum(Setting(protocol, size=1, clients=4, dropout=0.0), seed=0).run()
