"""How a command line ends: its exit code, and one line about what went wrong."""

from __future__ import annotations

import errno
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from fedmpi.cli import output
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
    return f"{' '.join(message.split()).rstrip('.')}; see {command}"


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
    except output.OutputLost as lost:
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
        if not interrupt.several_ranks() or start.has_started() or getattr(error, "agreed", False):
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
