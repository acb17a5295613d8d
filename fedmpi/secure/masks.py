"""Masks: the words that a secret stretches to, added modulo 2^32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

Words = npt.NDArray[np.uint32]


class Stretcher:
    """Stretches secrets to vectors of words by AES-256 in counter mode; each secret is used once.

    Parameters
    ----------
    size : int
        Words of a mask.
    """

    def __init__(self, size: int) -> None:
        self._zeros = bytes(4 * size)
        self._words = np.empty(size, np.uint32)
        self._bytes = memoryview(self._words.data).cast("B")

    def mask(self, secret: bytes) -> Words:
        """Return the mask of 32 secret bytes, uint32 [size]; the next call overwrites it."""
        stream = Cipher(AES(secret), CTR(bytes(16))).encryptor()
        stream.update_into(self._zeros, self._bytes)
        return self._words

    def add(self, secret: bytes, total: Words) -> None:
        """Add the mask of a secret to a vector in place, modulo 2^32."""
        np.add(total, self.mask(secret), out=total)

    def subtract(self, secret: bytes, total: Words) -> None:
        """Take the mask of a secret from a vector in place, modulo 2^32."""
        np.subtract(total, self.mask(secret), out=total)
