"""Any suite file is listed or refused with one line."""

from hypothesis import strategies as st

from tests.fuzz import suites
from tests.fuzz.oracle import flaw, refused
from tests.fuzz.tally import Failure


def test_any_suite_is_listed_or_refused_in_one_line(explore, server):
    def attempt(value, folder):
        text, settings = value
        (folder / "fuzz.toml").write_text(text, errors="surrogatepass")
        options = [part for setting in settings if "\0" not in setting for part in ("--set", setting)]
        ended = server.run(folder, "run", "fuzz.toml", "--list", *options)
        if kind := flaw(ended):
            return Failure(kind, f"fedmpi run fuzz.toml --list {options!r} of {text!r}")
        return "refused" if refused(ended) else "listed"

    tally = explore(90, st.tuples(suites.suites(), st.just([]) | suites.settings), attempt)
    assert not tally.failures, tally.verdict()
