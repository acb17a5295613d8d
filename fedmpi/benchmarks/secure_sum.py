"""One secure sum of simulated clients, one after another: CPU seconds and bytes of every step."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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

    @cached_property
    def degree(self) -> int:
        """Neighbours of a client in SecAgg+'s ring; 0: all others."""
        if self.protocol != "secagg+":
            return 0
        found = least_degree(self.clients, _CORRUPT, max(self.dropout, _LEAST_DROPOUT))
        return found.neighbours if found else 0

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
        shape = (len(roster.members), len(roster.members), length)
        with tempfile.TemporaryFile(prefix="fedmpi-bench-") as file:
            self._messages = np.memmap(file, np.uint8, "w+", shape=shape)

    def post(self, sender: int, sealed: Mapping[int, bytes]) -> None:
        """Keep a client's messages."""
        for receiver, message in sealed.items():
            place = self._places[sender], self._places[receiver]
            self._messages[place] = np.frombuffer(message, np.uint8)

    def fetch(self, receiver: int, senders: Sequence[int]) -> dict[int, bytes]:
        """Return the messages to a client."""
        column = self._messages[:, self._places[receiver]]
        return {sender: column[self._places[sender]].tobytes() for sender in senders}


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
        self._seconds: dict[str, float] = defaultdict(float)

    def run(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return what the sum took.

        Returns
        -------
        seconds : dict
            CPU seconds by step: the mean of its clients, or the server's.
        sent : dict
            Bytes by figure: what a client sends in each phase, its mean, and what the server receives.

        Raises
        ------
        RunFailed
            It is not the plain sum of the survivors' summands.
        """
        total = np.zeros(self._setting.size, self._protocol.dtype)
        plain = np.zeros(self._setting.size, np.int32)
        answers = {}
        mailbox = Mailbox(self._roster, self._protocol.sealed_bytes(self._roster))
        clients, vaults = self._share(mailbox)
        for number in self._roster.members:
            client = clients.pop(number)
            sealed = mailbox.fetch(number, self._roster.neighbours[number])
            with self._timed("shares"):
                client.accept(sealed)
            if number in self._survivors:
                self._upload(number, client, total, plain)
                with self._timed("answer"):
                    answers[number] = client.answer(self._survivors)
        server = self._protocol.server(self._roster, vaults)
        with self._timed("unmask"):
            unmasked = server.unmask(total, self._survivors, answers)
        if not np.array_equal(unmasked, plain):
            raise RunFailed(f"bench secure: {self._setting.title}: the sum is not the plain one")
        return self._seconds, self._sent(vaults, answers)

    def _share(self, mailbox: Mailbox) -> tuple[dict[int, Client], dict[int, bytes]]:
        """Make the clients and post what they offer each other; return them and what goes to the server."""
        clients, vaults = {}, {}
        with self._timed("keys"):
            keys = {number: AgreementKey() for number in self._roster.members}
        public = {number: key.public for number, key in keys.items()}
        for number in self._roster.members:
            with self._timed("keys"):
                clients[number] = self._protocol.client(number, keys.pop(number), public, self._roster)
            with self._timed("shares"):
                sealed, vaults[number] = clients[number].offer()
            mailbox.post(number, sealed)
        return clients, vaults

    def _upload(
        self, number: int, client: Client, total: npt.NDArray[Any], plain: npt.NDArray[np.int32]
    ) -> None:
        """Add a client's masked summand to the server's sum, and the summand itself to the plain one."""
        vector = update(self._seed, number, self._setting.size)
        with self._timed("upload"):
            summand = self._reduction.encode(vector, 1.0)
            masked = client.upload(summand)
        with self._timed("add"):
            self._protocol.add(masked, total)
        plain += summand

    def _sent(self, vaults: Mapping[int, bytes], answers: Mapping[int, bytes]) -> dict[str, float]:
        """Return the bytes that were sent."""
        sealed = self._protocol.sealed_bytes(self._roster)
        degree = sum(map(len, self._roster.neighbours.values())) / len(vaults)
        vault, answer = (sum(map(len, each.values())) / len(each) for each in (vaults, answers))
        upload = _WORD_BYTES * self._setting.size
        return {
            "client_offline_bytes": KEY_BYTES + degree * sealed + vault,
            "client_upload_bytes": upload,
            "client_answer_bytes": answer,
            "server_received_bytes": (KEY_BYTES + vault) * len(vaults) + (upload + answer) * len(answers),
        }

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        """Add the CPU seconds of what follows to a step, of which a client's count as their mean."""
        survivors = len(self._survivors)
        parties = {"upload": survivors, "answer": survivors, "add": 1, "unmask": 1}
        start = time.process_time()
        yield
        taken = time.process_time() - start
        self._seconds[step] += taken / parties.get(step, self._setting.clients)


def load_code(protocols: Iterable[str]) -> None:
    """Run a small sum of each protocol, so that no measured one loads compiled code."""
    for protocol in protocols:
        Sum(Setting(protocol, size=1, clients=4, dropout=0.0), seed=0).run()
