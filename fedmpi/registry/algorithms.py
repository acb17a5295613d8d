"""Algorithms by name: the files of fedmpi.algorithms, entry points, and plug-in files."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import sys
from importlib.metadata import entry_points
from pathlib import Path

import fedmpi.algorithms
from fedmpi.algorithms.base import Algorithm
from fedmpi.config.tables import closest
from fedmpi.errors import BadInput


def known() -> dict[str, type[Algorithm]]:
    """Return all algorithms by name.

    Raises
    ------
    BadInput
        Two algorithms share a name.
    """
    _load_installed()
    found: dict[str, type[Algorithm]] = {}
    for algorithm in _subclasses(Algorithm):
        name = getattr(algorithm, "name", None)
        if name in found:
            first = found[name].__module__
            raise BadInput(f'two algorithms are named "{name}": in {first} and in {algorithm.__module__}')
        if name is not None:
            found[name] = algorithm
    return dict(sorted(found.items()))


@functools.cache
def _load_installed() -> None:
    """Import all algorithms that are installed, once: to look for entry points takes milliseconds."""
    for module in pkgutil.iter_modules(fedmpi.algorithms.__path__):
        importlib.import_module(f"fedmpi.algorithms.{module.name}")
    for point in entry_points(group="fedmpi.algorithms"):
        point.load()


def _subclasses(parent: type[Algorithm]) -> list[type[Algorithm]]:
    direct = parent.__subclasses__()
    return direct + [deeper for child in direct for deeper in _subclasses(child)]


def find(name: str) -> type[Algorithm]:
    """Return the algorithm `name`.

    Raises
    ------
    BadInput
        There is none; the message lists those there are.
    """
    algorithms = known()
    if name not in algorithms:
        hint, valid = closest(name, algorithms), ", ".join(algorithms)
        raise BadInput(f'algorithm: there is no "{name}"{hint} (valid: {valid}; own ones need --plugin)')
    return algorithms[name]


def load_plugin(path: Path) -> None:
    """Import a Python file that defines algorithms.

    Raises
    ------
    BadInput
        The file is missing or fails on import.
    """
    spec = importlib.util.spec_from_file_location(f"fedmpi_plugin_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise BadInput(f"--plugin {path}: no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # keeps the classes alive, which their bases know weakly only
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInput(f"--plugin {path}: {type(error).__name__}: {error}") from error
