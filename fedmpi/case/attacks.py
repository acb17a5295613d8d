"""Attacks: which clients send what they should not (imports without torch)."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from fedmpi.config.options import Options, by_name
from fedmpi.seeds import Purpose, key, permutation

Ints = npt.NDArray[np.int64]

_FRACTION = 0.2


class NoAttack(Options):
    """All clients are benign."""

    name: Literal["none"] = "none"

    def attackers(self, seed: int, num_clients: int) -> Ints:
        """Return the clients that attack: none."""
        return np.zeros(0, np.int64)


class _Attack(Options):
    """An attack by some clients, the same ones in all rounds."""

    fraction: float = Field(_FRACTION, gt=0, lt=1)
    """Share of the clients that attack, rounded, one at least; which ones, the seeds say."""
    clients: tuple[int, ...] = Field((), strict=False)
    """Their numbers, from 0, in place of a share."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Beside the run's seed, for other attackers and other noise in the same run."""

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if self.clients and self.fraction != _FRACTION:
            raise ValueError("give fraction or clients, not both")
        if len(set(self.clients)) < len(self.clients) or min(self.clients, default=0) < 0:
            raise ValueError("clients are different numbers from 0")
        return self

    def attackers(self, seed: int, num_clients: int) -> Ints:
        """Return the clients that attack, ascending: a function of the run's seed and these options."""
        if self.clients:
            return np.array(sorted(self.clients), np.int64)
        count = max(1, int(np.floor(self.fraction * num_clients + 0.5)))
        stream = key(seed, Purpose.ATTACK, self.seed)
        return np.sort(permutation(stream, num_clients)[:count])


class LabelFlip(_Attack):
    """Attackers train on class C - 1 - y in place of y, in all rounds.

    Fang, Cao, Jia and Gong, "Local model poisoning attacks to Byzantine-robust federated learning",
    USENIX Security 2020. Of an odd number of classes the middle one stays.
    """

    name: Literal["label-flip"] = "label-flip"


class UpdateAttack(_Attack):
    """Attackers train as they should and send something else than their update."""

    from_round: int = Field(1, ge=1)
    """First round, from 1, of the attack."""
    every: int = Field(1, ge=1)
    """They attack in the first round and in every so-manieth after it."""

    together: ClassVar[bool] = False
    """Whether attackers tell each other their updates."""

    def due(self, round: int) -> bool:
        """Return whether they attack in a round, from 0."""
        return round + 1 >= self.from_round and (round + 1 - self.from_round) % self.every == 0


class SignFlip(UpdateAttack):
    """Attackers send -scale times their update (Li, Xu, Chen, Giannakis and Ling, "RSA", AAAI 2019)."""

    name: Literal["sign-flip"] = "sign-flip"
    scale: float = Field(4.0, gt=0)
    """By which the negative is longer."""


class Noise(UpdateAttack):
    """Attackers add Gaussian noise, whose root mean square is scale times that of their update.

    Blanchard et al. (2017) send noise alone, of a fixed length.
    """

    name: Literal["noise"] = "noise"
    scale: float = Field(10.0, gt=0)
    """Length of the noise, by that of the update."""


class Colluding(UpdateAttack):
    """Attackers all send -scale times the mean of the updates of the attackers of the round.

    Xie, Koyejo and Gupta, "Fall of empires: breaking Byzantine-tolerant SGD by inner product manipulation",
    UAI 2019, where the mean is that of the benign clients: here attackers know their own updates only.
    """

    name: Literal["colluding"] = "colluding"
    scale: float = Field(4.0, gt=0)
    """By which the negative is longer."""

    together: ClassVar[bool] = True


AttackOptions = NoAttack | LabelFlip | SignFlip | Noise | Colluding
ATTACKS = by_name(AttackOptions)
"""Option classes by name."""
