"""The machine's own rates, as `fedmpi bench train --json` measured them, to set a run's against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedmpi.analysis.cells import key
from fedmpi.analysis.page.collect import Digest
from fedmpi.config.documents import load_json
from fedmpi.errors import BadInput

_APART = ("suite", "name", "seed", "algorithm", "rounds", "numerics_version", "checkpoint_seconds", "link")
"""Settings that change neither the work of a round nor the memory it moves."""


@dataclass(frozen=True)
class Machine:
    """A machine's rates.

    Attributes
    ----------
    cpu_model : str
    layer : float
        GFLOP/s in products of the layers' shape, one process.
    least_seconds : float
        What one round of `work` takes at least in one process, training and evaluation together.
    work : str
        Marks the data and settings of that round.
    """

    cpu_model: str
    layer: float
    least_seconds: float
    work: str

    def dense_share(self, runs: Sequence[Digest], rate: float) -> float | None:
        """Return a rate per rank over the machine's; None on another processor."""
        if any(run.provenance.get("cpu_model") != self.cpu_model for run in runs):
            return None
        return rate / self.layer

    def roofline_share(self, runs: Sequence[Digest]) -> float | None:
        """Return least seconds over measured ones; None for other work, or on another processor."""
        if any(key(run.config, *_APART) != self.work for run in runs) or self.dense_share(runs, 1.0) is None:
            return None
        shares = []
        for run in runs:
            ranks = run.summary["ranks"][-1]
            busy = ranks * (run.phases.get("train", 0.0) + run.phases.get("evaluate", 0.0))
            shares.append(self.least_seconds * run.summary["rounds"] / busy if busy else np.nan)
        return float(np.mean(shares))


def read(path: Path) -> Machine:
    """Read what `fedmpi bench train --json` printed.

    Raises
    ------
    BadInput
        It cannot be read, or is something else.
    """
    try:
        found = load_json(path, "file")
        results = found["results"]
        return Machine(
            cpu_model=str(found["provenance"]["cpu_model"]),
            layer=float(results["layer_gflops"]),
            least_seconds=float(sum(results["least_seconds"].values())),
            work=key(found["settings"]["case"], *_APART),
        )
    except BadInput as error:
        raise BadInput(f"--machine {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"--machine {path}: not what `fedmpi bench train --json` prints") from error
