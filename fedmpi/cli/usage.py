"""What is wrong with a command line, in one line."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from typing import Any

import typer

from fedmpi.config.documents import short
from fedmpi.errors import BadInput

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Base of all that typer finds wrong with a command line; typer has no name for it."""


def in_one_line(error: Any) -> str:
    """Return what is wrong and where help is; of a command that was given nothing, its help.

    Parameters
    ----------
    error : UsageError
    """
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


def is_about_a_path(error: BaseException) -> bool:
    """Return whether an error says that a path cannot be used as the user named it."""
    return isinstance(error, OSError) and error.errno in _NO_PLACE and error.filename is not None


def path_in_one_line(error: OSError) -> str:
    """Return what the system says of a path."""
    limits = " (255 bytes a part, 4,096 in all)" if error.errno == errno.ENAMETOOLONG else ""
    return f"{short(str(error.filename))}: {error.strerror}{limits}"
