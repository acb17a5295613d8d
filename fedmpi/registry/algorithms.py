"""Algorithms by name: the files of fedmpi.algorithms, entry points, and plug-in files."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import pkgutil
import re
import sys
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path

import fedmpi.algorithms
from fedmpi.algorithms.base import Algorithm, AlgorithmOptions
from fedmpi.algorithms.capabilities import (
    CONFLICTS,
    Capability,
    WeightsFromReports,
    capabilities_of,
    hooks_of,
)
from fedmpi.config.tables import closest
from fedmpi.errors import BadInput
from fedmpi.exits import exits_raised

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


def known() -> dict[str, type[Algorithm]]:
    """Return all algorithms by name.

    Raises
    ------
    BadInput
        Two algorithms share a name, or one is not made as `Algorithm` asks for.
    """
    _load_installed()
    found: dict[str, type[Algorithm]] = {}
    for algorithm in _subclasses(Algorithm):
        name = getattr(algorithm, "name", None)
        if name is not None:
            _refuse_misfit(algorithm)
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


def _refuse_misfit(algorithm: type[Algorithm]) -> None:
    """Raise BadInput where a class is not made as `Algorithm` and its capabilities ask for."""
    place = f"{_file_of(algorithm)}: class {algorithm.__name__}"
    name, options = algorithm.name, algorithm.Options
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(f"{place}: name = {name!r}: a name is text of letters, digits and . _ + -")
    if not (isinstance(options, type) and issubclass(options, AlgorithmOptions)):
        raise BadInput(f"{place}: Options must be a subclass of AlgorithmOptions, not {options!r}")
    for capability in Capability.__subclasses__():
        if not issubclass(algorithm, capability):
            _refuse_idle_hooks(algorithm, capability, place)
    for first, second, reason in CONFLICTS:
        if issubclass(algorithm, first) and issubclass(algorithm, second):
            raise BadInput(f"{place}: {first.__name__} and {second.__name__} exclude each other: {reason}")
    if issubclass(algorithm, WeightsFromReports) and algorithm.weights is not Algorithm.weights:
        raise BadInput(f"{place}: weights is never called: round_weights of WeightsFromReports replaces it")
    bases: list[type] = [Algorithm, *capabilities_of(algorithm)]
    for base in bases:
        for part, usual in vars(base).items():
            own = getattr(algorithm, part)
            if isinstance(usual, bool) and not isinstance(own, bool):
                raise BadInput(f"{place}: {part} = {own!r}: it must be True or False")
            if callable(usual) and not callable(own):
                raise BadInput(f"{place}: {part} = {own!r}: it must be a method")
            if getattr(own, "__isabstractmethod__", False):
                raise BadInput(f"{place}: {base.__name__} needs the hook {part}: define it")


def _refuse_idle_hooks(algorithm: type[Algorithm], capability: type[Capability], place: str) -> None:
    """Raise BadInput where a class defines a hook that would never be called."""
    for hook in hooks_of(capability):
        if hasattr(algorithm, hook):
            kind = capability.__name__
            raise BadInput(f"{place}: {hook} is a hook of {kind}: derive the class from {kind}, or rename it")


def _file_of(algorithm: type[Algorithm]) -> str:
    """Return the file that defines a class, its module's name where there is none."""
    file = getattr(sys.modules.get(algorithm.__module__), "__file__", None)
    return str(file or algorithm.__module__)


def sources(algorithm: type[Algorithm]) -> dict[str, str]:
    """Return the SHA-256 of the files that define an algorithm and its bases, by file name.

    Those of fedmpi are left out, which its version and its numerics stand for.
    """
    found: dict[str, str] = {}
    for kind in algorithm.__mro__:
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None)
        if file is None or not issubclass(kind, Algorithm) or kind.__module__.startswith("fedmpi."):
            continue
        loaded: str | None = getattr(module, _DIGEST, None)
        found[Path(file).name] = loaded or hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return found


_DIGEST = "__fedmpi_sha256__"
"""Attribute of a plug-in's module: the digest of the text that was executed."""


def load_plugins(paths: Iterable[Path]) -> None:
    """Import Python files that define algorithms; see `load_plugin`."""
    for path in paths:
        load_plugin(path)


def load_plugin(path: Path) -> None:
    """Import a Python file that defines algorithms.

    Raises
    ------
    BadInput
        The file is missing, fails on import or ends the process there, defines no algorithm, or one that
        is not made as `Algorithm` asks for.
    """
    spec = importlib.util.spec_from_file_location(f"fedmpi_plugin_{path.stem}", path)
    if not path.is_file():
        raise BadInput(f"--plugin {path}: no such file")
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise BadInput(f"--plugin {path}: not a Python file, whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        source = path.read_bytes()
        digest = hashlib.sha256(source).hexdigest()
        if getattr(sys.modules.get(spec.name), _DIGEST, None) == digest:
            return  # one command may read its plug-ins twice
        sys.modules[spec.name] = module  # keeps the classes alive, which their bases know weakly only
        setattr(module, _DIGEST, digest)
        with exits_raised():  # what is executed is what was read: no bytecode of an earlier version
            exec(spec.loader.source_to_code(source, str(path)), vars(module))
    except SystemExit as error:
        raise BadInput(
            f"--plugin {path}: ended the process with exit code {error.code!r} when it was imported"
        ) from None
    except (Exception, KeyboardInterrupt) as error:
        text = " ".join(str(error).split())
        raise BadInput(f"--plugin {path}: {type(error).__name__}: {text}") from error
    for algorithm in _subclasses(Algorithm):
        if algorithm.__module__ == spec.name and hasattr(algorithm, "name"):
            _refuse_misfit(algorithm)
    if not any(hasattr(each, "name") for each in vars(module).values() if _is_algorithm(each)):
        raise BadInput(f"--plugin {path}: it defines no algorithm, a subclass of Algorithm with a `name`")


def _is_algorithm(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Algorithm) and value is not Algorithm
