"""The page's templates: the whole page, and the parts of its sections."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup


def file(name: str) -> Markup:
    """Return a file that the page is made of."""
    return Markup(files("fedmpi.analysis.page").joinpath(name).read_text(encoding="utf-8"))


def template(source: str) -> Template:
    """Return a template that escapes what it is given, and refuses what it is not given."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source)


@cache
def _parts() -> Any:
    lines = re.sub(r"\n(?=<|\{%|$)", "", file("parts.html.j2"))
    return template(lines.replace("\n", " ")).module


def part(name: str) -> Callable[..., Markup]:
    """Return a part of the page by its name in ``parts.html.j2``."""
    found: Callable[..., Markup] = getattr(_parts(), name)
    return found
