"""What the newest checkpoint of a run holds, and a way to write another one beside it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from fedmpi.store import checkpoint
from fedmpi.store.checkpoint import Manifest, Part


def newest(folder: Path) -> SimpleNamespace:
    """Return `meta`, the `server`'s arrays and the `states` by client of a run's newest checkpoint."""
    place = folder / checkpoint.FOLDER
    named = json.loads((place / "manifest").read_text().splitlines()[0])
    count = sum(len(part["clients"]) for part in named["parts"])
    manifest = checkpoint.read_manifest(place, "manifest", count)
    states = checkpoint.read_states(place, manifest, range(count))
    return SimpleNamespace(
        meta=manifest.meta, server=checkpoint.read(place, manifest.server), states=states, manifest=manifest
    )


def save(place: Path, meta, server, *states, token: str = "0badcafe") -> Manifest:
    """Save a checkpoint of several ranks; `states` are each one's, by client."""
    parts = []
    for rank, mine in enumerate(states):
        path = place / checkpoint.file_name(token, meta.rounds, rank)
        sizes = np.array([len(state) for state in mine.values()], np.int64)
        digest = checkpoint.write(path, {"states": np.concatenate(list(mine.values())), "sizes": sizes})
        parts.append(Part(file=path.name, sha256=digest, clients=list(mine)))
    path = place / checkpoint.file_name(token, meta.rounds, None)
    own = Part(file=path.name, sha256=checkpoint.write(path, server))
    manifest = Manifest(meta=meta, server=own, parts=parts)
    checkpoint.save(place, manifest)
    return manifest
