"""How a command line ends: its exit code, and one line about what went wrong."""

from __future__ import annotations

import errno
import signal
import sys
import traceback
from collections.abc import Callable

from fedmpi.cli import output
from fedmpi.cli.usage import UsageError, in_one_line, is_about_a_path, path_in_one_line
from fedmpi.comm import interrupt, launch
from fedmpi.errors import BadInput, FedmpiError, Interrupted, RunFailed
from fedmpi.visible import complain, visible_lines

_FULL = (errno.ENOSPC, errno.EDQUOT)
_READER_GONE = 128 + signal.SIGPIPE
"""What a shell shows of a tool that nobody reads any more."""


def exit_code(command: Callable[[], int | None]) -> int:
    """Run a command line and return its exit code, having said in a line what went wrong."""
    try:
        code = command()
        sys.stdout.flush()
        return int(code or 0)
    except FedmpiError as error:
        return _ended(str(error), error.exit_code)
    except UsageError as error:
        return _ended(in_one_line(error), BadInput.exit_code)
    except interrupt.Stopped:
        return _ended(interrupt.LINE, Interrupted.exit_code)
    except output.OutputLost as lost:
        return _READER_GONE if lost.reader_gone else _ended(f"cannot write: {lost}", RunFailed.exit_code)
    except OSError as error:
        return _of_system(error)
    except Exception:
        return _defect()


def _of_system(error: OSError) -> int:
    """Say what the system refused: a full disk, a path that cannot be used, or what nobody thought of."""
    if error.errno in _FULL:
        where = f" {error.filename}" if error.filename else ""
        return _ended(f"cannot write{where}: {error.strerror}", RunFailed.exit_code)
    if is_about_a_path(error):
        return _ended(path_in_one_line(error), BadInput.exit_code)
    return _defect()


def _defect() -> int:
    """Print the traceback of what is being handled, for whoever mends it."""
    if launch.rank() == 0:
        sys.stderr.write(visible_lines(traceback.format_exc()))
    return _ended("this is a defect of fedmpi; please report it with `fedmpi info`", RunFailed.exit_code)


def _ended(line: str, code: int) -> int:
    """Say on rank 0 why the command ends, if there is anything to say, and return its exit code."""
    if line and launch.rank() == 0:
        complain(line)
    return code
