"""What a run folder holds, checked before MPI starts (imports without torch and MPI)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedmpi.engine.case import Case
from fedmpi.errors import BadInput
from fedmpi.store import events
from fedmpi.store.schema import config_differences


def holds_run(folder: Path) -> bool:
    """Return whether a folder holds a record, or events from which one can be made again."""
    return (folder / "run.h5").exists() or events.begun(folder / events.NAME)


def refuse_other_config(case: Case, stored: Mapping[str, Any], folder: Path) -> None:
    """Raise BadInput, naming the differences, unless a stored configuration is this very one."""
    differences = config_differences(stored, case.config())
    if differences:
        raise BadInput(
            f"{folder} holds a run of another configuration ({'; '.join(differences)}); "
            "choose another folder with --out"
        )
