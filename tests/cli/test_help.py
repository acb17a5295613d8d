"""The help: groups of commands, an example for each, and a start that imports none of them."""

import subprocess
import sys

import pytest
import typer.main

from fedmpi.cli.main import app

LISTED = """
import sys
sys.argv = ["fedmpi", "--help"]
from fedmpi.cli.main import main
try:
    main()
except SystemExit:
    pass
heavy = {"pydantic", "numpy", "h5py", "fedmpi.cli.run", "fedmpi.registry.check"} & set(sys.modules)
assert not heavy, heavy
"""


def all_commands(command, words=()):
    """Yield the words and the command of every leaf."""
    for name in getattr(command, "commands", ()):
        yield from all_commands(command.get_command(None, name), (*words, name))
    if not hasattr(command, "commands"):
        yield words, command


COMMANDS = dict(all_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_an_example_that_parses(words):
    heading, *examples = COMMANDS[words].epilog.split("\n\n")
    assert heading == "Examples:" and examples
    for example in examples:
        given = example[example.index("fedmpi ") :].split()[1:]
        assert tuple(given[: len(words)]) == words
        COMMANDS[words].make_context(" ".join(words), given[len(words) :])
    assert all(each.help for each in COMMANDS[words].params)


def test_help_lists_all_commands_in_groups_and_imports_none():
    done = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    panels = ("─ Run ─", "─ Look ─", "─ Data and records ─", "─ Cluster ─", "─ Develop and reproduce ─")
    places = [done.stdout.index(panel) for panel in panels]
    assert places == sorted(places)
    assert all(f"│ {words[0]} " in done.stdout for words in COMMANDS)
    old = {"figure", "pack", "verify", "repair", "select", "system", "reproduction"}
    assert not old & {words[0] for words in COMMANDS}
