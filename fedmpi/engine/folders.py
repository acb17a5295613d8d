"""What a run folder holds, checked before MPI starts (imports without torch and MPI)."""

from __future__ import annotations

from pathlib import Path

from fedmpi.engine.case import Case
from fedmpi.errors import BadInput
from fedmpi.store.reader import Run
from fedmpi.store.schema import config_differences


def holds_run(folder: Path) -> bool:
    """Return whether a folder holds a record or its events."""
    return any((folder / name).exists() for name in ("run.h5", "events.jsonl"))


def refuse_other_config(case: Case, run: Run) -> None:
    """Raise BadInput, naming the differences, unless a run has this very configuration."""
    differences = config_differences(run.config, case.config())
    if differences:
        raise BadInput(
            f"{run.folder} holds a run of another configuration ({'; '.join(differences)}); "
            "choose another folder with --out"
        )
