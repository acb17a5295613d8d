"""Every kind of thing that a suite names, and the plug-in files that define more of them."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from fedmpi.datasets.family import FAMILIES
from fedmpi.errors import BadInput
from fedmpi.exits import exits_raised
from fedmpi.kinds import DIGEST, Kind
from fedmpi.models.options import MODELS
from fedmpi.objectives.options import OBJECTIVES
from fedmpi.partition.options import PARTITIONS
from fedmpi.registry.algorithms import ALGORITHMS
from fedmpi.tasks.known import TASKS

KINDS: tuple[Kind[Any], ...] = (ALGORITHMS, MODELS, OBJECTIVES, PARTITIONS, FAMILIES, TASKS)
"""What a plug-in file may define."""


def load_plugins(paths: Iterable[Path]) -> None:
    """Import Python files that define algorithms, models and the like; see `load_plugin`."""
    for path in paths:
        load_plugin(path)


def load_plugin(path: Path) -> None:
    """Import a Python file that defines something of any of the `KINDS`.

    Raises
    ------
    BadInput
        The file is missing, fails on import or ends the process there, defines nothing, or something that
        is not made as its base asks for.
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
        loaded = sys.modules.get(spec.name)
        if getattr(loaded, DIGEST, None) == digest:
            return  # one command may read its plug-ins twice
        other = getattr(loaded, "__file__", None)
        if other is not None and Path(other).resolve() != path.resolve():
            raise BadInput(f"another plug-in has this name: {other}; rename one of them")
        sys.modules[spec.name] = module  # keeps the classes alive, which their bases know weakly only
        setattr(module, DIGEST, digest)
        with exits_raised():  # what is executed is what was read: no bytecode of an earlier version
            exec(spec.loader.source_to_code(source, str(path.absolute())), vars(module))
    except SystemExit as error:
        raise BadInput(
            f"--plugin {path}: ended the process with exit code {error.code!r} when it was imported"
        ) from None
    except BadInput as error:
        raise BadInput(f"--plugin {path}: {error}") from None
    except (Exception, KeyboardInterrupt) as error:
        text = " ".join(str(error).split())
        raise BadInput(f"--plugin {path}: {type(error).__name__}: {text}") from error
    defined = [value for value in vars(module).values() if isinstance(value, type)]
    named = [(kind, each) for kind in KINDS for each in kind.classes() if each in defined]
    if not named:
        bases = ", ".join(kind.base.__name__ for kind in KINDS)
        raise BadInput(f"--plugin {path}: it defines nothing: no subclass of {bases} with a `name`")
    for kind, each in named:
        kind.check(each)
