"""The page's templates: the whole page, and the parts of its sections."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from fedmpi.tables.html import compact, template


def file(name: str) -> Markup:
    """Return a file that the page is made of."""
    return Markup(files("fedmpi.analysis.page").joinpath(name).read_text(encoding="utf-8"))


@cache
def _parts() -> Any:
    return template(compact(file("parts.html.j2"))).module


def part(name: str) -> Callable[..., Markup]:
    """Return a part of the page by its name in ``parts.html.j2``."""
    found: Callable[..., Markup] = getattr(_parts(), name)
    return found
