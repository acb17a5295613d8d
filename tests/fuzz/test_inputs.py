"""Any suite file is listed, any command line obeyed, or refused with one line."""

import shutil

from hypothesis import strategies as st

from tests.fuzz import arguments, suites
from tests.fuzz.oracle import Failure, flaw

_CODES = {"compare": (0, 1, 2), "records verify": (0, 1, 2), "jobs status": (0, 1, 2, 75)}
"""Exit codes beside 0 and 2 that a command has a meaning for."""

_RUNS = 5
"""Runs of the home, for each of which `compare` may have a line."""


def test_any_suite_is_listed_or_refused_in_one_line(explore, server):
    def attempt(value, folder):
        text, settings = value
        (folder / "fuzz.toml").write_text(text, errors="surrogatepass")
        options = [part for setting in settings if "\0" not in setting for part in ("--set", setting)]
        ended = server.run(folder, "run", "fuzz.toml", "--list", *options)
        if kind := flaw(ended):
            return Failure(kind, f"fedmpi run fuzz.toml --list {options!r} of {text!r}")
        return "refused" if ended.refused else "listed"

    explore(90, st.tuples(suites.suites(), st.just([]) | suites.settings), attempt)


def test_any_command_line_is_obeyed_or_refused_in_one_line(explore, server, home):
    def attempt(value, folder):
        name, words = value
        place = folder / "work"
        shutil.copytree(home, place)
        (place / "empty").mkdir()
        (place / "loop").symlink_to(".")
        ended = server.run(place, *words)
        if kind := flaw(ended, _CODES.get(name, (0, 2)), lines=1 + len(words) + _RUNS * (name == "compare")):
            return Failure(f"{name}: {kind}", f"fedmpi {words!r}")
        return "refused" if ended.refused else "obeyed"

    explore(70, arguments.lines(), attempt)
