"""Recipes that are Python, executed without the tools that they are for: stand-ins note what they declare."""

from __future__ import annotations

import runpy
import sys
import types
from pathlib import Path

PACKAGING = Path(__file__).parents[2] / "jobs" / "packaging"


class Declared(list):
    """Calls of directives, in order: name, arguments, keywords."""

    def directive(self, name):
        return lambda *arguments, **keywords: self.append((name, arguments, keywords))

    def of(self, name):
        return [(arguments, keywords) for called, arguments, keywords in self if called == name]


def load(path, monkeypatch, modules):
    """Execute a recipe with stand-ins for modules (attributes by dotted name); return its namespace."""
    for name, attributes in modules.items():
        stand_in = types.ModuleType(name)
        stand_in.__dict__.update(attributes)
        stand_in.__path__ = []  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, stand_in)
    return runpy.run_path(str(PACKAGING / path))
