"""What is wrong with a command line, in one line."""

from __future__ import annotations

from typing import Any

import typer

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
        return f"{message}\n" if message.strip() else ""  # rich has shown it already
    command = f"{error.ctx.command_path} --help" if error.ctx else "--help"
    return f"fedmpi: {' '.join(message.split()).rstrip('.')}; see {command}\n"
