"""Plug-in files of a test, whose classes are gone afterwards."""

from __future__ import annotations

import gc
import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedmpi.registry.kinds import load_plugin


class Plugins:
    """Writes plug-in files into a folder, and loads them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, text: str) -> Path:
        """Write a file, in place of what a former one of this name has defined."""
        forget(name)
        path = self._folder / f"{name}.py"
        path.write_text(text)
        return path

    def __call__(self, name: str, text: str) -> dict[str, str]:
        """Write a file and load it; return its digest as a configuration has it."""
        path = self.write(name, text)
        load_plugin(path)
        return {path.name: hashlib.sha256(text.encode()).hexdigest()}


@contextmanager
def forgotten(folder: Path) -> Iterator[Plugins]:
    """Give plug-ins and forget all that were loaded."""
    yield Plugins(folder)
    forget("")


def forget(name: str) -> None:
    """Drop the modules of plug-in files whose names begin so, and their classes."""
    for module in [each for each in sys.modules if each.startswith(f"fedmpi_plugin_{name}")]:
        del sys.modules[module]
    gc.collect()
