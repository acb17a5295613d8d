"""Hash chain of a log's lines: each has its number and a digest of itself and all lines before."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_BETWEEN, _END = b', "digest": "', b'"}'
_HEX = 32
_SEAL = len(_BETWEEN) + _HEX + len(_END)
_SHAPE = re.compile(_BETWEEN + b"[0-9a-f]{%d}" % _HEX + _END)
_NUMBER = re.compile(rb'\{"line": (\d{1,18}),')


class BrokenChain(ValueError):
    """A line is not the one that was written at its place; the text says what is wrong with it."""


@dataclass(frozen=True)
class Chain:
    """Position in a log.

    Attributes
    ----------
    lines : int
        Lines so far.
    digest : bytes
        That of the last line; empty before the first.
    """

    lines: int = 0
    digest: bytes = b""

    def seal(self, body: bytes) -> tuple[bytes, Chain]:
        """Return the next line, its end included, and where the log is after it.

        Parameters
        ----------
        body : bytes
            JSON of an object that has entries.
        """
        text = b'{"line": %d, %b' % (self.lines + 1, body[1:])
        after = self._after(text)
        return b"".join((text[:-1], _BETWEEN, after.digest.hex().encode(), _END, b"\n")), after

    def open(self, line: bytes) -> tuple[bytes, Chain]:
        """Return the JSON of the next line without its seal, and where the log is after it.

        Raises
        ------
        BrokenChain
            The line was changed, or another one belongs here.
        """
        text, seal = line[:-_SEAL] + b"}", line[-_SEAL:]
        after = self._after(text)
        if seal == b"".join((_BETWEEN, after.digest.hex().encode(), _END)):
            return text, after
        number, wanted = _NUMBER.match(line), self.lines + 1
        if number is not None and int(number[1]) != wanted:
            raise BrokenChain(
                f"line {wanted} says that it is line {int(number[1])}: lines are missing, doubled or moved"
            )
        if not _SHAPE.fullmatch(seal):
            raise BrokenChain(f"line {wanted} is not an event of a fedmpi run (no digest at its end)")
        raise BrokenChain(f"line {wanted} is not the one that was written (its digest does not fit)")

    def _after(self, text: bytes) -> Chain:
        digest = hashlib.blake2b(self.digest + text, digest_size=_HEX // 2).digest()
        return Chain(self.lines + 1, digest)
