"""How a command line ends: its exit code, a line about what went wrong, output that nobody takes any more."""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import stat
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

import typer

from fedmpi.comm import interrupt, launch, start
from fedmpi.config.documents import short
from fedmpi.errors import BadInput, FedmpiError, Interrupted, RunFailed
from fedmpi.visible import complain, visible_lines

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Base of all that typer finds wrong with a command line; typer has no name for it."""


def _usage(error: Any) -> str:
    """Return what is wrong with a command line, and where help is; of one that has no words, nothing."""
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        return " ".join(message.split())  # nothing: rich has shown it already
    command = f"{error.ctx.command_path} --help" if error.ctx else "--help"
    return f"{' '.join(message.split()).rstrip('.?')}; see {command}"


_NO_PLACE = (
    errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS,
)  # fmt: skip
"""What the system says of a path that cannot be used as the user named it."""


def refuse_unreadable(words: Iterable[str], environment: Mapping[str, str]) -> None:
    """Refuse arguments and FEDMPI variables that no path, name or setting can be.

    Raises
    ------
    BadInput
        One holds the character that ends a path, or is not UTF-8, in which names are printed and stored.
    """
    named = [("", word) for word in words]
    named += [(f"{name}: ", text) for name, text in environment.items() if name.startswith("FEDMPI_")]
    for name, text in named:
        if "\0" in text:
            raise BadInput(f"{name}{short(text)!a}: the character \\0 ends a path; leave it out")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise BadInput(f"{name}{short(text)!a}: not UTF-8; rename it")


_FULL = (errno.ENOSPC, errno.EDQUOT)
_READER_GONE = 128 + signal.SIGPIPE
"""What a shell shows of a tool that nobody reads any more."""


def exit_code(command: Callable[[], int | None]) -> int:
    """Run a command line and return its exit code, having said in a line what went wrong."""
    try:
        code = command()
        sys.stdout.flush()
        return int(code or 0)
    except interrupt.Stopped:
        return _ended(interrupt.LINE, Interrupted.exit_code)
    except OutputLost as lost:
        return _READER_GONE if lost.reader_gone else _ended(f"cannot write: {lost}", RunFailed.exit_code)
    except Exception as error:
        return _ended(*_said(error, printing=launch.rank() == 0))


@contextmanager
def before_mpi() -> Iterator[None]:
    """Within, where MPI has not started, an error of one rank is every rank's.

    MPICH's launcher leaves ranks waiting for MPI to start where another has ended with an exit code.

    Raises
    ------
    FedmpiError
        That of the lowest rank that has one.
    """
    try:
        yield
    except Exception as error:
        if not interrupt.several_ranks() or launch.mpi_has_started() or getattr(error, "agreed", False):
            raise
        agreed = start.failed(*_said(error, printing=launch.rank() > 0))
        if launch.rank() == 0:
            raise
        raise agreed from error


def _said(error: Exception, *, printing: bool) -> tuple[str, int]:
    """Return the line about an error, and the exit code; of a defect print the traceback, too."""
    match error:
        case FedmpiError():
            return str(error), error.exit_code
        case OSError() if error.errno in _FULL:
            where = f" {error.filename}" if error.filename else ""
            return f"cannot write{where}: {error.strerror}", RunFailed.exit_code
        case OSError() if error.errno in _NO_PLACE and error.filename is not None:
            limits = " (255 bytes a part, 4,096 in all)" if error.errno == errno.ENAMETOOLONG else ""
            return f"{short(str(error.filename))}: {error.strerror}{limits}", BadInput.exit_code
        case UsageError():
            return _usage(error), BadInput.exit_code
    if printing:
        sys.stderr.write(visible_lines("".join(traceback.format_exception(error))))
    return "this is a defect of fedmpi; please report it with `fedmpi info`", RunFailed.exit_code


def _ended(line: str, code: int) -> int:
    """Say on rank 0 why the command ends, if there is anything to say, and return its exit code."""
    if line and launch.rank() == 0:
        complain(line)
    return code


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
