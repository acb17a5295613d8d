import itertools
from dataclasses import dataclass
from pathlib import Path

import pytest

from fedmpi.store.reader import Run, load_run
from tests.plugins import forgotten
from tests.started import sets

NUMBERS = itertools.count()


@dataclass(frozen=True)
class Ran:
    """How a run of a plug-in's algorithm ended, the plug-in's file, and the record of a run that came to its end."""

    returncode: int
    stderr: str
    file: Path
    record: Run | None

    @property
    def line(self):
        """The one line that fedmpi says."""
        (line,) = [line for line in self.stderr.splitlines() if line.startswith("fedmpi: ")]
        return line


@pytest.fixture
def run(fedmpi, tmp_path):
    """Return a function that runs an algorithm of a plug-in file for three rounds; NAME in the text is its name."""
    with forgotten(tmp_path) as plugins:

        def start(text, *settings):
            name = f"odd{next(NUMBERS)}"
            file, out = plugins.write(name, text.replace("NAME", name)), tmp_path / name
            changes = sets(f"algorithm={name}", "rounds=3", *settings)
            done = fedmpi("run", "synthetic/quick", "--case", "0", "--plugin", file, *changes, "--out", out)
            record = None if done.returncode else load_run(next(out.iterdir()))
            return Ran(done.returncode, done.stderr, file, record)

        yield start
