"""Standard output and standard error of a command: what happens when nobody takes them any more."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from fedmpi.comm import launch


class OutputLost(Exception):
    """Standard output takes no more: its reader has gone, its disk is full, or it was closed.

    It is no `OSError`, so that nobody takes it for trouble with a file of his own.

    Attributes
    ----------
    reader_gone : bool
        Whether the reader of a pipe has ended, as that of ``fedmpi report RUNS | head -1``.
    """

    def __init__(self, reason: str, reader_gone: bool) -> None:
        super().__init__(reason)
        self.reader_gone = reader_gone


class _Output:
    """A text stream that says once when it is lost, by a call, and takes everything silently from then on."""

    def __init__(self, stream: TextIO, descriptor: int, on_loss: Callable[[OutputLost], None]) -> None:
        self._stream, self.on_loss = stream, on_loss
        self._beyond = launch.launchers_stream(descriptor)
        self._lost = False

    def write(self, text: str) -> int:
        self._unless_lost(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._unless_lost(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _unless_lost(self, action: Callable[[], Any]) -> None:
        if self._lost:
            return
        try:
            _check(self._beyond)
            action()
        except OSError as error:
            self._lost = True
            _give_up(self._stream)
            self.on_loss(OutputLost(str(error.strerror), error.errno == errno.EPIPE))


def _check(beyond: str | None) -> None:
    """Raise OSError where a launcher could not pass on what it gets: trying to would end it, and the job."""
    if beyond is None:
        return
    opened = os.open(beyond, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        looking = select.poll()
        looking.register(opened, 0)
        if any(event & select.POLLERR for _, event in looking.poll(0)):  # a pipe without a reader
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        if stat.S_ISREG(os.fstat(opened).st_mode) and os.fstatvfs(opened).f_bavail == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(opened)


def _give_up(stream: TextIO) -> None:
    """Send what a stream still holds to nowhere: at the end of the process it would fail again."""
    with suppress(OSError, ValueError), open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), stream.fileno())


@contextmanager
def guarded() -> Iterator[None]:
    """Within, a lost standard output raises `OutputLost`, and a lost standard error does nothing.

    Text that the stream's encoding does not have is written as Python escapes it.
    """
    previous = sys.stdout, sys.stderr
    output = _Output(_present(sys.stdout, 1), 1, _raise)
    sys.stdout = cast(TextIO, output)
    sys.stderr = cast(TextIO, _Output(_present(sys.stderr, 2), 2, _ignore))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = previous


def outlive() -> None:
    """From now on a lost standard output ends no command: it is said once on the standard error."""
    if isinstance(sys.stdout, _Output):
        sys.stdout.on_loss = _say


def _raise(lost: OutputLost) -> None:
    raise lost


def _ignore(lost: OutputLost) -> None:
    """Keep quiet: there is nowhere to say it."""


def _say(lost: OutputLost) -> None:
    sys.stderr.write(f"fedmpi: standard output is lost ({lost}); the work goes on without it\n")


def _present(stream: TextIO | None, descriptor: int) -> TextIO:
    """Return a stream, or for a closed one its descriptor, on which writing fails.

    The descriptor must not stay free: the next file that is opened would get it, and whatever a library
    prints would go there.
    """
    if stream is None:
        opened = os.open(os.devnull, os.O_RDONLY)
        while opened < descriptor:
            opened = os.open(os.devnull, os.O_RDONLY)
        return open(opened, "w", closefd=False)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream
