"""A hook that returns what it should not ends the run with its name; one that is right ends it complete."""

from __future__ import annotations

import json
import re

from tests.fuzz.hooks import wrong_hooks
from tests.fuzz.oracle import flaw
from tests.fuzz.tally import Failure

RUN = ("run", "suite.toml", "--case", "0", "--plugin", "plugin.py", "--out", "runs")

SUITE = """
name = "hooks"
[case]
algorithm = "wrong"
dataset = { name = "synthetic", synthetic = { domains = 2, graphs = 24 } }
partition = "per-dataset"
rounds = 3
batch_size = 8
kernels = "csr"
checkpoint_seconds = 0.0
"""


def ends(wrong, ended, report):
    """Return what came of a run with a hook: "named", "complete", or the failure."""
    said = [line for line in ended.err.split("\n") if line]
    example = f"{wrong!r}: exit {ended.code}: {' | '.join(said[-3:])[-600:]}"
    if ended.code == 0:
        summary = json.loads(report().out)[0]
        if summary["status"] != "complete" or summary["rounds"] != 3:
            return Failure(f"{wrong.hook}: exit code 0 without all rounds", example)
        if wrong.expected == "named":
            return Failure(f"{wrong.hook}: complete with a wrong value: {wrong.body}", example)
        return "complete"
    if shows_where(ended, wrong):
        return "raised"
    if wrong.expected == "complete":
        return Failure(f"{wrong.hook}: a right value ends the run", example)
    if kind := flaw(ended, (1, 2, 3)):
        return Failure(f"{wrong.hook}: {kind}", example)
    if wrong.expected == "named" and not names(said, wrong):
        return Failure(f"{wrong.hook}: the end does not name algorithm and hook", example)
    return "named"


def shows_where(ended, wrong):
    """Return whether an exception of the hook's own ends the run: with a traceback that leads to it, or a line."""
    line = ended.err.strip()
    if ended.code == 2 and line.count("\n") == 0 and re.search(r"plugin\.py(:\d+)? raised ", line):
        return True
    trace = f'plugin.py", line {wrong.source[: wrong.source.index(wrong.body)].count(chr(10)) + 1}, in {wrong.hook}'
    plain = all(letter.isprintable() for letter in ended.err.replace("\n", ""))
    return ended.code == 1 and trace in ended.err and plain


def names(said, wrong):
    """Return whether one line names algorithm and hook."""
    return len(said) == 1 and "wrong" in said[0] and wrong.named in said[0]


def test_any_hook_is_right_or_named_in_one_line(explore, server):
    def attempt(wrong, folder):
        (folder / "suite.toml").write_text(SUITE)
        (folder / "plugin.py").write_text(wrong.source)
        ended = server.run(folder, *RUN, trains=True)
        return ends(wrong, ended, lambda: server.run(folder, "report", "runs", "--json"))

    explore(9, wrong_hooks, attempt)
