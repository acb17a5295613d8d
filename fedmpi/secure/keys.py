"""Keys of a client: agreement by X25519, derivation by HKDF-SHA256, sealed messages, signatures."""

from __future__ import annotations

import secrets
import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

KEY_BYTES = 32
NONCE_BYTES = 12
SEAL_BYTES = NONCE_BYTES + 16
"""By how much a sealed message is longer than what it holds: nonce and tag."""


class Tampered(Exception):
    """A message or signature is not what its sender made."""


@dataclass(frozen=True)
class Purpose:
    """What a key or a message is for; no two purposes give the same key.

    Attributes
    ----------
    run : bytes
        Drawn anew at every start of a run.
    use : str
    number, group : int
        Of the sum in the run, and of the group whose sum it is.
    sender, receiver : int
        Clients, in this order.
    """

    run: bytes
    use: str
    number: int
    group: int
    sender: int
    receiver: int

    def packed(self) -> bytes:
        """Return the purpose as bytes, from which all its parts can be read back."""
        run, use = self.run, self.use.encode()
        shape = f">BB{len(run)}s{len(use)}s4q"
        parties = self.number, self.group, self.sender, self.receiver
        return struct.pack(shape, len(run), len(use), run, use, *parties)


class AgreementKey:
    """A client's X25519 key pair (RFC 7748); the private key comes from the operating system.

    What it agreed on with another key is computed once and kept as long as the key pair.
    """

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()
        self._extracted: dict[bytes, bytes] = {}

    def agreed(self, public: bytes, purpose: Purpose) -> bytes:
        """Return the 32 bytes that both owners of the keys derive for a purpose, and nobody else."""
        if public not in self._extracted:
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(public))
            self._extracted[public] = extracted(shared)
        return expanded(self._extracted[public], purpose)


def extracted(secret: bytes) -> bytes:
    """Return the pseudorandom key of a secret: the first step of HKDF-SHA256 (RFC 5869), without salt."""
    mac = HMAC(bytes(KEY_BYTES), SHA256())
    mac.update(secret)
    return mac.finalize()


def expanded(key: bytes, purpose: Purpose) -> bytes:
    """Return 32 bytes derived from a pseudorandom key for a purpose: the second step of HKDF-SHA256."""
    return HKDFExpand(SHA256(), KEY_BYTES, purpose.packed()).derive(key)


def fresh_secret() -> bytes:
    """Return 32 bytes from the operating system."""
    return secrets.token_bytes(KEY_BYTES)


def seal(key: bytes, message: bytes, purpose: Purpose) -> bytes:
    """Return a message encrypted and authenticated for a purpose: ChaCha20-Poly1305 (RFC 8439)."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, message, purpose.packed())


def unseal(key: bytes, sealed: bytes, purpose: Purpose) -> bytes:
    """Return what was sealed.

    Raises
    ------
    Tampered
        Another key, another purpose, or a changed byte.
    """
    try:
        return ChaCha20Poly1305(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], purpose.packed())
    except InvalidTag:
        raise Tampered(f"{purpose.use} from client {purpose.sender} to {purpose.receiver}") from None


class SigningKey:
    """A client's Ed25519 key pair (RFC 8032)."""

    def __init__(self) -> None:
        self._private = Ed25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message, 64 bytes."""
        return self._private.sign(message)


def verify(public: bytes, signature: bytes, message: bytes) -> None:
    """Raise Tampered unless the owner of a public key signed the message."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        raise Tampered("a signature") from None
