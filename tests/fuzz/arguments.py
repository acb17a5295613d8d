"""Command lines from the program's own tree of commands."""

from __future__ import annotations

import functools
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.cli.test_help import COMMANDS
from tests.fuzz import nasty

LEFT_OUT = {"sweep", "paper system", "bench train", "bench ranks", "bench comm", "bench record",
            "bench data", "bench peers", "bench sums", "bench secure"}  # fmt: skip
"""Commands that start MPI or train."""

ALWAYS = {
    "run": ("--list",), "plot": ("losses",), "watch": ("--once",), "bench gpu": ("--from", "rows.csv"),
    "analyse statistics": ("PROTEINS",), "analyse properties": ("PROTEINS",),
    "analyse heterogeneity": ("PROTEINS",),
}  # fmt: skip
"""Words without which a command would train, never end, or read more data than a child may hold."""

NEVER = {"paper select": {"--rerun"}, "info": {"--mpi"}}

_PLACES = ("suite.toml", "runs", "runs/whole", "runs/whole/run.h5", "stopped/whole", "bundle.tar.gz", "rows.csv",
           "plugin.py", "system.toml", "nowhere", "nowhere/deeper", "empty", "loop", "/dev/null", "/dev/full",
           "/proc/self/mem", "synthetic/quick", "gcfl/proteins", "own/OWN", "x" * 300, "new\nline", "\x1b[31m",
           "caf\u00e9", "\udcff", "out.svg", "out.png", "out.tar.gz", "workstation", "generic-cpu", "PROTEINS", "FUZZ",
           "-", "losses", "t-sne", "clustering", "synthetic", "cache", "mirror")  # fmt: skip
"""Files, folders and names of things: what is there, what is not, and what no file system takes."""

_VALUES = ("0", "-1", "1", "1e999", "nan", "0.5", "101", "1pt", "1%", "10%", "0.01", "1e-400", "8,16", "1,,2",
           "1," * 500, nasty.LONG_INTEGER, "9" * 25, "seed=1", "rounds=0", "algorithm=none", "kind=x", "a=b=c", "=",
           "dataset.name", "seed", "cuda", "cpu")  # fmt: skip

_WORDS = st.sampled_from(_PLACES) | st.sampled_from(_VALUES) | nasty.texts
_WORDS = _WORDS.filter(lambda word: "\0" not in word)


@functools.cache
def commands() -> dict[str, Any]:
    """Return the commands by name, such as "data list"."""
    found = {" ".join(words): command for words, command in COMMANDS.items()}
    return {name: command for name, command in found.items() if name not in LEFT_OUT}


def _word(parameter: Any) -> SearchStrategy[str]:
    """Return words for a parameter: mostly those that it may take."""
    textual = str(getattr(parameter, "type_descriptor", ""))
    likely = _PLACES if parameter.param_type_name == "argument" or "Path" in textual else _VALUES
    return st.one_of(st.sampled_from(likely), st.sampled_from(likely), _WORDS)


@st.composite
def lines(draw: DrawFn) -> tuple[str, list[str]]:
    """Return a command's name and the words of a command line."""
    name = draw(st.sampled_from(sorted(commands())))
    words = [*name.split(), *ALWAYS.get(name, ())]
    for parameter in commands()[name].params:
        if parameter.name == "help":
            continue
        if parameter.param_type_name == "argument":
            least, most = int(draw(st.integers(0, 9)) > 0), 3 if parameter.nargs < 0 else 1
            count = draw(st.integers(least, most))
            words += [draw(_word(parameter)) for _ in range(count)]
        elif parameter.opts[0] not in NEVER.get(name, ()) and draw(st.integers(0, 2)) == 0:
            words += [parameter.opts[0]] if parameter.is_flag else [parameter.opts[0], draw(_word(parameter))]
    if draw(st.integers(0, 9)) == 0:
        words.insert(draw(st.integers(len(name.split()), len(words))), draw(_WORDS))
    return name, words
