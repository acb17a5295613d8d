"""Any command line is obeyed or refused with one line."""

import shutil

from tests.fuzz import arguments
from tests.fuzz.oracle import flaw, refused
from tests.fuzz.tally import Failure

_CODES = {
    "compare": (0, 1, 2),
    "records verify": (0, 1, 2),
    "jobs status": (0, 1, 2, 75),
    "paper reproduction": (0, 2),
}
"""Exit codes beside 0 and 2 that a command has a meaning for."""

_RUNS = 5
"""Runs of the home, for each of which `compare` may have a line."""


def test_any_command_line_is_obeyed_or_refused_in_one_line(explore, server, home):
    def attempt(value, folder):
        name, words = value
        place = folder / "work"
        shutil.copytree(home.path, place)
        (place / "empty").mkdir()
        (place / "loop").symlink_to(".")
        ended = server.run(place, *words)
        if kind := flaw(ended, _CODES.get(name, (0, 2)), lines=1 + len(words) + _RUNS * (name == "compare")):
            return Failure(f"{name}: {kind}", f"fedmpi {words!r}")
        return "refused" if refused(ended) else "obeyed"

    tally = explore(70, arguments.lines(), attempt)
    assert not tally.failures, tally.verdict()
