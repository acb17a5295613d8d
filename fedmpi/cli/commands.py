"""A function is a command: its signature has the options, its docstring what they mean.

A parameter without a default is an argument, one with a default an option of its name, unless typer.Argument
or typer.Option in its annotation says otherwise. A dataclass stands for an option per field; where the
parameter has a default, the fields have what they are there.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from fedmpi.errors import BadInput

_SECTION = re.compile(r"^(\w+)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+).*\n((?: +.*\n?)+)", re.MULTILINE)
_METAVARS = {Path: "PATH", int: "N", float: "X", bool: " "}
"""What help shows for the value of an option, where it is not TEXT."""


def commands(
    places: Mapping[str, str], panels: Mapping[str, Collection[str]] | None = None, **settings: Any
) -> typer.Typer:
    """Return commands that are imported when they are called.

    Parameters
    ----------
    places : mapping
        Module of this package and function, by the command's name.
    panels : mapping, optional
        Names of all commands by the panel of the help that they stand in.
    settings
        Of the `typer.Typer`.
    """
    group = type("_Group", (_ByModule,), {"places": places, "panels": panels or {}})
    app = typer.Typer(cls=group, no_args_is_help=True, **settings)
    for name in places:
        app.command(name)(lambda: None)
    return app


class _ByModule(TyperGroup):
    """Commands that are imported when they are asked for: the program starts fast, and needs no torch."""

    places: Mapping[str, str]
    panels: Mapping[str, Collection[str]]
    _listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; its help is its function's docstring without the sections but the examples."""
        panel = next((panel for panel, names in self.panels.items() if cmd_name in names), None)
        if cmd_name not in self.places:
            found = super().get_command(ctx, cmd_name)
            if panel and found is not None:
                found.rich_help_panel = panel  # type: ignore[attr-defined]
            return found
        module, _, name = self.places[cmd_name].partition(".")
        if self._listing:
            return TyperCommand(cmd_name, help=_first_line(module, name), rich_help_panel=panel)
        function = getattr(importlib.import_module(f"fedmpi.cli.{module}"), name)
        sections = _sections(function)
        examples = filter(None, map(str.strip, sections.get("Examples", "").splitlines()))
        alone = typer.Typer(add_completion=False)
        epilog = "\n\n".join(["Examples:", *examples])
        alone.command(cmd_name, help=sections[""], epilog=epilog)(_by_field(function))
        return typer.main.get_command(alone)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of their panels."""
        order = [name for names in self.panels.values() for name in names]
        return sorted(super().list_commands(ctx), key=lambda name: order.index(name) if order else 0)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the list of commands without importing them."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


def _first_line(module: str, name: str) -> str:
    """Return the first line of a command's docstring, read from its file."""
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text())
    (found,) = (each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name)
    return (ast.get_docstring(found) or "").partition("\n\n")[0]


def _sections(owner: Any) -> dict[str, str]:
    """Return the sections of a docstring by their headings; what stands before them has none."""
    text, *sections = _SECTION.split(inspect.getdoc(owner) or "")
    return {"": text.strip(), **dict(zip(sections[::2], sections[1::2], strict=True))}


def _meanings(owner: Any, heading: str) -> dict[str, str]:
    """Return what a section of a docstring says of each parameter, or of each field of a dataclass."""
    entries = _ENTRY.findall(_sections(owner).get(heading, ""))
    return {name: " ".join(text.split()) for name, text in entries}


def _by_field(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the fields of its dataclasses one by one, each with its meaning."""
    parameters = inspect.signature(function, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: each.annotation for name, each in parameters.items() if is_dataclass(each.annotation)
    }
    meanings = _meanings(function, "Parameters")
    listed: list[inspect.Parameter] = []
    for name, each in parameters.items():
        if name not in groups:
            listed.append(each)
            continue
        for base in groups[name].__mro__:
            meanings = _meanings(base, "Attributes") | meanings
        kinds = get_type_hints(groups[name], include_extras=True)  # of a base in the names of its own module
        fields_of = inspect.signature(groups[name]).parameters
        standing = {} if each.default is each.empty else vars(each.default)
        listed += [
            field.replace(annotation=kinds[name], default=standing.get(name, field.default))
            for name, field in fields_of.items()
        ]

    @functools.wraps(function)
    def call(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        return function(**given)

    by_name = [_option(each, meanings).replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in listed]
    call.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    return call


def _option(parameter: inspect.Parameter, meanings: Mapping[str, str]) -> inspect.Parameter:
    """Return a parameter as typer takes it, with a name, a meaning and a word for its value."""
    if parameter.annotation is typer.Context:
        return parameter
    info: Any = typer.Argument() if parameter.default is parameter.empty else typer.Option()
    kind = parameter.annotation
    if get_origin(kind) is Annotated:
        kind, info = get_args(kind)
    value = kind
    while get_args(value):
        value = get_args(value)[0]
    found, is_argument = copy(info), isinstance(info, ArgumentInfo)
    if not is_argument and info.default is ...:  # typer takes a name that is given for a default, at first
        found.param_decls = (f"--{parameter.name.rstrip('_').replace('_', '-')}",)
    shown = parameter.name.upper() if is_argument else _METAVARS.get(value, "TEXT")
    found.metavar, found.help = info.metavar or shown, info.help or meanings.get(parameter.name)
    return parameter.replace(annotation=Annotated[kind, found])


def refuse_beside(context: typer.Context, why: str, allowed: Collection[str]) -> None:
    """Refuse the options of a command that mean nothing beside another one.

    Parameters
    ----------
    context : typer.Context
        Of the command.
    why : str
        The other option, and what it does.
    allowed : collection of str
        Parameters that may be given.

    Raises
    ------
    BadInput
    """
    others = [each for each in context.command.params if each.name not in allowed]
    sources = {each.opts[0]: context.get_parameter_source(str(each.name)) for each in others}
    given = [option for option, source in sources.items() if source and source.name == "COMMANDLINE"]
    if given:
        raise BadInput(f"{why}: leave {' and '.join(given)} out")
