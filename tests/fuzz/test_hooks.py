"""A hook that returns what it should not ends the run with its name; one that is right ends it complete."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st

from tests.fuzz.oracle import Failure, flaw

_TEMPLATE = """
import os
import sys
import numpy as np
from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.program import Memory
from fedmpi.algorithms.robust import Robust

class Wrong({base}):
    "FedAvg but for one hook."
    name = "wrong"
    {others}
    def {hook}({parameters}):
        right = {right}
        {body}
"""


@dataclass(frozen=True)
class Hook:
    """A method: its parameters, an expression of what is right, what is beside it, and the hook it is part of."""

    parameters: str
    right: str
    base: str = "Algorithm"
    others: str = "pass"
    within: str = ""


_SPLITS = """decides = frozenset({'splits'})

    def decide(self, server):
        if server.round == 1:
            server.split(self.parts(server))
"""
_MOVES = """decides = frozenset({'moves'})
    asks = frozenset({'rows'})

    def decide(self, server):
        rows = yield server.rows(self.asked(server))
        for members in server.groups():
            server.move(members, np.zeros(rows.shape[1]))
"""
_REGROUPS = """decides = frozenset({'groups'})
    asks = frozenset({'rows'})
"""

HOOKS = {
    "participants": Hook("self, seed, round, num_clients, fraction", "np.arange(num_clients)"),
    "groups": Hook("self, num_clients", "np.zeros(num_clients, np.int64)"),
    "shares": Hook("self, name, share", "name.startswith('conv.')"),
    "weights": Hook("self, samples", "samples"),
    "update": Hook("self, model, mean, num_clients", "(model + mean).astype(np.float32)"),
    "parts": Hook(
        "self, server", "[server.participants[:1], server.participants[1:]]", others=_SPLITS, within="decide"
    ),
    "asked": Hook("self, server", "server.participants", others=_MOVES, within="decide"),
    "aggregate": Hook(
        "self, rows, trained", "rows.mean(axis=0, dtype=np.float64)", "Robust", within="decide"
    ),
    "change": Hook("self, gradient, model, received, memory", "None"),
    "train": Hook("self, client", "client.run_epochs()"),
    "trained": Hook("self, client", "None"),
    "evaluated": Hook("self, client", "client.model"),
    "memory": Hook("self, tensors", "{'own': Memory('shared')}"),
    "moments": Hook("self, tensors", "{'own': 'model'}"),
    "predict": Hook("self, client", "None"),
    "messages": Hook("self, model, classes", "{}"),
    "tells": Hook("self, model, classes", "{}"),
    "decide": Hook(
        "self, server",
        "server.regroup(np.zeros(len(server.group), np.int64)) or (yield server.rows(server.participants))",
        others=_REGROUPS,
    ),
    "begin": Hook("self, trained, num_clients", "None"),
    "validate": Hook("self, model", "None"),
    "server_memory": Hook("self, trained, num_clients", "{}"),
    "fields": Hook("self, num_clients", "()"),
}

WRONG = (
    "return -1", "return 0.5", "return float('nan')", "return None", "return 'text'", "return object()", "return {}",
    "return [[1], [2, 3]]", "return np.full(3, np.nan)", "return np.full(np.shape(right), -1)",
    "return np.full(np.shape(right), 0.5)", "return np.full(np.shape(right), 10**18)", "return np.zeros((2, 2))",
    "return np.asarray(right)[:0]", "return np.concatenate([np.atleast_1d(right)] * 2)",
    "return np.asarray(right).astype(str)", "return np.asarray(right) + np.nan", "return (right, right)",
    "return np.asarray(right) - 1", "return np.full(np.shape(right), np.inf, np.float32)", "return lambda: right",
    "raise ValueError('on purpose')", "raise KeyError('new\\nline')", "sys.exit(0)", "sys.exit('bye')",
    "raise KeyboardInterrupt", "raise RecursionError", "return 10**400", "os.remove('nowhere')",
    "yield right", "raise type('Odd\\x1b[31m', (Exception,), {})('\\x1b[31m')",
)  # fmt: skip
"""Bodies of a hook, most of them wrong for most hooks."""

LEGITIMATE = ("return right", "return type(right)(right) if isinstance(right, (int, str, bool)) else right")
"""Bodies that are right for any hook."""

IGNORED = frozenset({"change", "decide", "train", "trained", "begin", "validate"})
"""Hooks whose return value nobody reads: whatever they return is legitimate."""

LOOSE = frozenset({"shares", "fields", "server_memory", "memory", "messages", "moments", "tells"})
"""Hooks that answer yes or no, or with collections: what is no answer is not told from an odd one."""

_LESS, _NAN = "return np.asarray(right) - 1", "return np.asarray(right) + np.nan"
_HALVES = "return np.full(np.shape(right), 0.5)"
POSSIBLE = {
    "weights": (_LESS, _HALVES, "return np.full(np.shape(right), 10**18)"),
    "validate": ("yield right",),
    "aggregate": (_LESS, _HALVES, _NAN),
    "asked": ("return np.asarray(right)[:0]", "return np.concatenate([np.atleast_1d(right)] * 2)"),
    "predict": ("return None",),
    "update": (_LESS, _NAN, "return np.full(np.shape(right), np.inf, np.float32)"),
}
"""Values of the right kind that no algorithm is known to have; a model that is not finite diverges."""


@dataclass(frozen=True)
class Wrong:
    """A hook and its body; `late` lets the first round pass."""

    hook: str
    body: str
    late: bool

    @property
    def source(self) -> str:
        """The plug-in's file."""
        hook = HOOKS[self.hook]
        body = self.body
        if self.late and "round" in hook.parameters:
            body = f"if round == 0:\n            return right\n        {body}"
        parts = {"base": hook.base, "others": hook.others, "hook": self.hook, "parameters": hook.parameters}
        return _TEMPLATE.format(**parts, right=hook.right, body=body)

    @property
    def named(self) -> str:
        """The hook that the end of a run names."""
        return HOOKS[self.hook].within or self.hook

    @property
    def expected(self) -> str:
        """What the run must come to: "complete", "named", or "either"."""
        returns = self.body.startswith("return ")
        if self.body in LEGITIMATE or (self.hook in IGNORED and returns):
            return "complete"
        loose = self.hook in LOOSE and returns
        return "either" if loose or self.body in POSSIBLE.get(self.hook, ()) else "named"


wrong_hooks = st.builds(
    Wrong, st.sampled_from(sorted(HOOKS)), st.sampled_from(WRONG + LEGITIMATE), st.booleans()
)


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


@pytest.mark.long
def test_any_hook_is_right_or_named_in_one_line(explore, server):
    def attempt(wrong, folder):
        (folder / "suite.toml").write_text(SUITE)
        (folder / "plugin.py").write_text(wrong.source)
        ended = server.run(folder, *RUN, trains=True)
        return ends(wrong, ended, lambda: server.run(folder, "report", "runs", "--json"))

    explore(9, wrong_hooks, attempt)
