"""What a run folder holds, checked before MPI starts (imports without torch and MPI)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedmpi.case.schema import Case
from fedmpi.errors import BadInput
from fedmpi.store import events, runfile
from fedmpi.store.schema import config_differences


def holds_run(folder: Path) -> bool:
    """Return whether a folder holds a record, or events from which one can be made again."""
    log = folder / events.NAME
    return (folder / runfile.NAME).is_file() or (log.is_file() and events.begun(log))


class OtherVersion(BadInput):
    """A folder holds a run of another version of the algorithm's plug-in; `file` says of which."""

    def __init__(self, folder: Path, file: str) -> None:
        super().__init__(
            f"{folder} was made with another version of {file}; "
            "choose another folder with --out, or delete this one"
        )
        self.file = file


def refuse_other_config(case: Case, stored: Mapping[str, Any], folder: Path) -> None:
    """Raise BadInput, naming the differences, unless a stored configuration is this very one.

    Raises
    ------
    OtherVersion
        The settings are the same; a plug-in's file is not.
    """
    config = case.config()
    if (other := _other_version(stored.get("plugin"), config.get("plugin"))) is not None:
        raise OtherVersion(folder, other)
    differences = config_differences(stored, config)
    if differences:
        raise BadInput(
            f"{folder} holds a run of another configuration ({'; '.join(differences)}); "
            "give the suite another name, or choose another folder with --out"
        )


def _other_version(stored: Any, present: Any) -> str | None:
    """Return the first plug-in file in both whose digests differ, with these; None if there is none."""
    if not isinstance(stored, Mapping) or not isinstance(present, Mapping):
        return None
    for name in sorted(stored.keys() & present.keys()):
        if stored[name] != present[name]:
            return f"{name} (sha256 {str(stored[name])[:12]}, now {str(present[name])[:12]})"
    return None
