"""One secure sum with every party in this process, and clients that leave at chosen steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedmpi.exchange.meter import Meter
from fedmpi.programs.position import Position
from fedmpi.secure import neighbours
from fedmpi.secure.keys import AgreementKey
from fedmpi.secure.protocols import LightSecAgg, SecAgg
from fedmpi.secure.roster import Roster, TooFew
from fedmpi.store.schema import SECURE_STEPS

SHARES, UPLOAD, ANSWER, NEVER = range(4)
"""The step before which a client drops out."""

SIZE = 7


def meter_of(collectives):
    """Return what counts the steps of a secure sum."""
    return Meter(collectives, Position(), tuple(SECURE_STEPS))


PROTOCOLS = {"secagg": SecAgg(SIZE, 0.5), "lightsecagg": LightSecAgg(SIZE, 0.5, 0.5)}


@dataclass
class Setting:
    """Protocol, members and threshold of a sum."""

    protocol: str
    roster: Roster

    @classmethod
    def of(cls, protocol: str, members: Sequence[int], threshold: int, degree: int = 0):
        circle = (
            neighbours.ring(neighbours.shuffled(members), degree) if degree else neighbours.everybody(members)
        )
        return cls(protocol, Roster(b"run", 3, 0, tuple(members), circle, threshold))

    def clients(self):
        keys = {number: AgreementKey() for number in self.roster.members}
        public = {number: key.public for number, key in keys.items()}
        return {n: PROTOCOLS[self.protocol].client(n, key, public, self.roster) for n, key in keys.items()}

    def after_upload(self):
        """Return the clients after their uploads."""
        clients, values = self.clients(), summands(self.roster.members)
        exchange(self.roster, clients)
        for number, client in clients.items():
            client.upload(values[number])
        return clients


def exchange(roster, clients):
    """Let all clients share their secrets."""
    offers = {number: client.offer()[0] for number, client in clients.items()}
    for number, client in clients.items():
        client.accept({n: offers[n][number] for n in roster.neighbours[number]})


def summands(members: Sequence[int], seed: int = 0) -> dict[int, np.ndarray]:
    """Return a vector per member, of the size of those of "fixed32"."""
    random = np.random.default_rng(seed)
    bound = 2**30 // len(members)
    return {number: random.integers(-bound, bound, SIZE).astype(np.int32) for number in members}


def secure_sum(setting: Setting, values: Mapping[int, np.ndarray], leaves: Mapping[int, int]) -> np.ndarray:
    """Return what the server computes; `leaves` holds the step before which a client drops out."""
    left = {number: leaves.get(number, NEVER) for number in setting.roster.members}
    clients = setting.clients()
    offers = {number: clients[number].offer() for number, step in left.items() if step > SHARES}
    there = [number for number, step in left.items() if step > SHARES]
    sealed = {n: {m: text[n] for m, (text, _) in offers.items() if n in text} for n in there}
    willing = [number for number in there if willingly(lambda n=number: clients[n].accept(sealed[n]))]
    uploaded = {n: clients[n].upload(values[n]) for n in willing if left[n] > UPLOAD}
    survivors = setting.roster.joined(uploaded)
    uploads = [uploaded[number] for number in survivors]
    total = np.sum(uploads, axis=0, dtype=uploads[0].dtype) if uploads else np.zeros(SIZE, np.uint32)
    answers = {}
    for number in uploaded:
        if left[number] > ANSWER:
            willingly(lambda n=number: answers.update({n: clients[n].answer(survivors)}))
    vaults = {number: vault for number, (_, vault) in offers.items()}
    server = PROTOCOLS[setting.protocol].server(setting.roster, vaults)
    return server.unmask(total, survivors, answers)


def willingly(step) -> bool:
    """Let a client take a step; return whether it did, or left because too few others are there."""
    try:
        step()
    except TooFew:
        return False
    return True


def plain_sum(values: Mapping[int, np.ndarray], leaves: Mapping[int, int]) -> np.ndarray:
    """Return the sum over the clients that uploaded."""
    stayed = [value for number, value in values.items() if leaves.get(number, NEVER) > UPLOAD]
    return np.sum(stayed, axis=0, dtype=np.int64)
