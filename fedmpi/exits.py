"""Ways out of the process become exceptions while plug-ins run (imports without torch and MPI)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def exits_raised() -> Iterator[None]:
    """Have ``os._exit`` in the main thread raise `SystemExit`, as ``sys.exit`` does.

    A rank that leaves without a word ends an MPICH job with the code that it chose, 0 included. Children
    and other threads leave as ever.
    """
    leave, process = os._exit, os.getpid()

    def raised(status: int) -> NoReturn:
        if os.getpid() == process and threading.current_thread() is threading.main_thread():
            raise SystemExit(status)
        leave(status)

    os._exit = raised
    try:
        yield
    finally:
        os._exit = leave
