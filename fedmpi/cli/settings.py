"""``fedmpi suites``, ``options`` and ``new``: bundled suites, every setting of one, and one to start from."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from fedmpi.cli.options import Json, Plugin
from fedmpi.cli.terminal import console, print_json, say, show
from fedmpi.config import locations
from fedmpi.config.names import refuse_no_name
from fedmpi.config.suite import read
from fedmpi.errors import BadInput
from fedmpi.registry.reference import Axis, Entry, Setting, axes, find
from fedmpi.tables.table import Column, Table, listed
from fedmpi.tables.texts import markdown
from fedmpi.visible import visible

_WIDEST = 100
"""Columns of text, however wide the terminal is."""
_MOST_DATASETS = 12
"""Datasets of a family that are named."""
_STARTER = Path(__file__).with_name("starter.toml")


def suites(words: Annotated[list[str] | None, typer.Argument()] = None) -> int:
    """List the bundled suites: cases, description.

    Parameters
    ----------
    words
        Only those that name or description say this of, e.g. fclg.

    Raises
    ------
    BadInput
        There is none.

    Examples
    --------
    fedmpi suites fclg
    """
    wanted = [word.lower() for word in words or []]
    every = [(name, read(locations.find(name))) for name in locations.bundled()]
    chosen = [
        (name, len(suite.cases), suite.description)
        for name, suite in every
        if all(word in f"{name} {suite.description}".lower() for word in wanted)
    ]
    if not chosen:
        raise BadInput(f"no bundled suite says {' and '.join(words or [])}; `fedmpi suites` lists all")
    columns = listed(("suite", "cases", "description"), wrapped=("description",))
    note = "`fedmpi run SUITE --list` lists a suite's cases; bench/README.md says what each needs"
    return show(Table(columns, chosen, notes=[note]))


def options(
    axis: Annotated[str, typer.Argument()] = "",
    name: Annotated[str, typer.Argument()] = "",
    plugin: Plugin = None,
    as_json: Json = False,
    markdown: bool = False,
) -> int:
    """Show the settings of a suite: every key, its type, default, range and meaning.

    Without an argument the axes and what there is on each; with an axis its names and the settings that
    they share; with a name its settings; with a key whatever has it.

    Parameters
    ----------
    axis
        An axis of the cases, such as algorithm; a name of one; or a key, such as optimizer.lr.
    name
        A name of the axis, such as fedprox.
    markdown
        Print all settings as Markdown.

    Raises
    ------
    BadInput
        There is no such axis or name.

    Examples
    --------
    fedmpi options algorithm fedprox
    fedmpi options optimizer.lr
    """
    if markdown:
        if axis or as_json:
            raise BadInput("--markdown prints all settings: give neither an axis nor --json")
        sys.stdout.write(_markdown(list(axes().values())))
        return 0
    found = find(axis, name) if axis else [(each, ()) for each in axes().values()]
    if as_json:
        return print_json([_as_data(each, entries or each.entries) for each, entries in found])
    if not axis:
        return show(Table(_AXES, [each for each, _ in found], notes=[_MORE]))
    for each, entries in found:
        _show_entries(each, entries) if entries else _show_axis(each)
    return 0


def new(file: Path) -> int:
    """Write a commented suite to start from; it runs as it is.

    Parameters
    ----------
    file
        The suite to write; its name is the suite's.

    Raises
    ------
    BadInput
        The file exists, or its name can be no suite's.

    Examples
    --------
    fedmpi new mine.toml
    """
    if file.suffix != ".toml":
        raise BadInput(f"{file}: a suite is a TOML file: name it {file.name}.toml")
    refuse_no_name(file, file.stem)
    text = _STARTER.read_text().replace("NAME", file.stem).replace("FILE", visible(file))
    try:
        with file.open("x") as stream:
            stream.write(text)
    except FileExistsError:
        raise BadInput(f"{file}: it exists; name another file") from None
    except OSError as error:
        raise BadInput(f"{file}: cannot write it ({error.strerror})") from error
    say(f"wrote {file}. Next: fedmpi run {file} --list, then mpiexec -n 3 fedmpi run {file}")
    return 0


def _names(axis: Axis) -> str:
    return ", ".join(sorted((entry.name for entry in axis.entries), key=lambda name: name != axis.default))


_AXES: tuple[Column[Axis], ...] = (
    Column("axis", attrgetter("name")),
    Column("names, the default first", _names, wrapped=True),
)
_MORE = "`fedmpi options AXIS` and `fedmpi options AXIS NAME` show more; docs/settings.md has all"


def _show_axis(axis: Axis) -> None:
    """Print the names of an axis and the settings that all of them have."""
    if axis.name == "case":
        _print([setting for entry in axis.entries for setting in entry.settings])
        return
    columns: list[Column[Entry]] = [
        Column(axis.name, attrgetter("name")),
        Column("what it is", attrgetter("meaning"), wrapped=True),
    ]
    default = f'Default: "{axis.default}". `fedmpi options {axis.name} NAME` shows its settings'
    show(Table(columns, axis.entries, axis.meaning, [default] if axis.default else []))
    if axis.common:
        _print(axis.common, axis.whose, "")


def _show_entries(axis: Axis, entries: Sequence[Entry]) -> None:
    for entry in entries:
        about = []
        if axis.name != "case":
            about = [f"{axis.name} {entry.name}", *_wrapped(entry.meaning)]
        about += _wrapped(f"Paper: {entry.paper}") if entry.paper else []
        about += _wrapped(f"Datasets: {_listed(entry.datasets)}") if entry.datasets else []
        about += [] if entry.settings else ["It has no settings of its own."]
        _print(entry.settings, *about, *[""] * bool(about))


def _print(settings: Sequence[Setting], *head: str) -> None:
    """Print lines, then each setting as it stands in a suite, with what it takes and means below."""
    lines = list(head)
    for setting in settings:
        lines.append(f"{setting.key}{_assigned(setting)}")
        lines += [*_wrapped(f"{_kind(setting)}. {setting.meaning}", "    "), ""]
    for line in lines:
        say(line)


def _assigned(setting: Setting) -> str:
    """Return the default as a suite states it."""
    if setting.default is ...:
        return "  (the default differs)"
    if setting.type == "table":
        return "  (left out)" if setting.default is None else ""
    return "  (no default)" if setting.default is None else f" = {json.dumps(setting.default)}"


def _kind(setting: Setting) -> str:
    if setting.type == "choice":
        return f"One of {setting.values}"
    text = f"{setting.type}, {setting.values}" if setting.values else setting.type
    return text[0].upper() + text[1:]


def _wrapped(text: str, indent: str = "") -> list[str]:
    width = min(console(sys.stdout).width, _WIDEST) - len(indent)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}{line}" for line in lines]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_DATASETS
    rest = f" and {more} more (`fedmpi data list`)" if more > 0 else ""
    return ", ".join(names[:_MOST_DATASETS]) + rest


def _as_data(axis: Axis, entries: Sequence[Entry]) -> dict[str, Any]:
    about = {"axis": axis.name, "meaning": axis.meaning, "default": axis.default}
    return {**about, "names": [asdict(entry) for entry in entries]}


_HEAD = """# Settings

Every key of a suite's cases, as `fedmpi options` shows them. `fedmpi options --markdown` writes this page; do
not edit it. Keys are dotted as `--set` takes them: `--set algorithm.mu=0.1`. `fedmpi options algorithm.mu`
shows one key. In a suite's file they may be tables ([bench/README.md](../bench/README.md#a-suite)). What
`[figure]` takes is in [figures.md](figures.md).
"""


def _markdown(found: Sequence[Axis]) -> str:
    """Return the page of all settings."""
    parts = [_HEAD]
    for axis in found:
        default = f' Default: `"{axis.default}"`.' if axis.default else ""
        parts.append(f"\n## `{axis.name}`\n\n{axis.meaning}{default}\n")
        if axis.name == "case":
            every = [setting for entry in axis.entries for setting in entry.settings]
            parts += ["\n", markdown(Table(_SETTINGS, every))]
            continue
        if axis.like:
            parts.append(f"\nNames and settings are those of [`{axis.like}`](#{axis.like}).\n")
            continue
        parts += ["\n", markdown(Table(_ENTRIES, axis.entries))]
        if axis.common:
            parts += [f"\n{axis.whose}\n\n", markdown(Table(_SETTINGS, axis.common))]
        for entry in axis.entries:
            if own := axis.own(entry):
                parts += [f"\n### `{entry.name}`\n\n", markdown(Table(_SETTINGS, own))]
    return "".join(parts)


def _code(setting: Setting) -> str:
    if setting.default is ...:
        return "differs"
    if setting.default is None or setting.type == "table":
        return ""
    return f"`{json.dumps(setting.default)}`"


def _tagless(text: str) -> str:
    """Return a text of which Markdown takes nothing for a tag."""
    return text.replace("<", "&lt;")


_ENTRIES: tuple[Column[Entry], ...] = (
    Column("name", lambda row: f"`{row.name}`"),
    Column("what it is", lambda row: _tagless(row.meaning)),
    Column("paper", lambda row: _tagless(row.paper)),
)
_SETTINGS: tuple[Column[Setting], ...] = (
    Column("key", lambda row: f"`{row.key}`"),
    Column("default", _code),
    Column("value", lambda row: _tagless(_kind(row))),
    Column("meaning", lambda row: _tagless(row.meaning)),
)
