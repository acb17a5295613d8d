"""Plug-in files of single tests."""

import gc
import sys

import pytest


@pytest.fixture
def plugged(fedmpi, tmp_path):
    """Return a function that writes ``own.py`` and runs a command line with it, in a process that knows no other."""

    def forget():
        for name in [name for name in sys.modules if name.startswith("fedmpi_plugin_")]:
            del sys.modules[name]
        gc.collect()

    def run(text, *arguments):
        forget()
        (tmp_path / "own.py").write_text(text)
        return fedmpi(*arguments, "--plugin", "own.py")

    yield run
    forget()
