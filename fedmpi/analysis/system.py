"""FedGraphNN's Table 6 on this machine: seconds, FLOPs and parameters beside the published ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from pydantic import TypeAdapter

from fedmpi.datasets.moleculenet import MOLECULES
from fedmpi.models.fedgraphnn_flops import published_flops
from fedmpi.models.options import FedGraphNNOptions, ModelOptions, Shape
from fedmpi.store.reader import Run

_MODEL: TypeAdapter[ModelOptions] = TypeAdapter(ModelOptions)

SLEEP_S = 0.3
"""The released server handles one message of a client per so many seconds."""

PUBLISHED_ROUNDS = 50
"""Rounds behind Table 6's times: not stated there; its sweeps and Table 2's scripts say 50."""

PUBLISHED_CLIENTS = 4

_SETS = ("SIDER", "BACE", "ClinTox", "BBBP", "Tox21", "FreeSolv", "ESOL", "Lipophilicity")
_WALL_S = {
    "gcn": dict(zip(_SETS, (358, 297, 280, 253, 903, 252, 325, 974), strict=True)),
    "gat": dict(zip(_SETS, (528, 327, 457, 328, 1549, 384, 516, 1528), strict=True)),
    "sage": dict(zip(_SETS, (127, 238, 282, 206, 871, 353, 414, 928), strict=True)),
}
"""Table 6's wall-clock times, of whole runs on eight GPUs, data loading and evaluation included."""

_WIDTH = 8
"""Input width of scalar8."""


@dataclass(frozen=True)
class SystemRow:
    """One cell of Table 6.

    Attributes
    ----------
    dataset, algorithm, model : str
    ranks : int
    round_s : float
        Median seconds per round.
    train_step_ms : float
        CPU time of a local step.
    published_s : float or None
        The published seconds divided by `PUBLISHED_ROUNDS`.
    without_sleeps_s : float or None
        The same less the released server's sleeps, `SLEEP_S` per client and round: an upper bound of
        what was work.
    with_sleeps_s : float
        Ours with those sleeps added.
    parameters : int
    published_flops, flops : int
        Forward FLOPs of an average molecule as the paper counts them; as they are, the mean over the
        held-out molecules.
    """

    dataset: str
    algorithm: str
    model: str
    ranks: int
    round_s: float
    train_step_ms: float
    published_s: float | None
    without_sleeps_s: float | None
    with_sleeps_s: float
    parameters: int
    published_flops: int
    flops: int


def system_rows(runs: Iterable[Run]) -> list[SystemRow]:
    """Return a row per complete run of one of FedGraphNN's models on molecules; others are left out."""
    return [_row(run, options) for run, options in _molecular(runs)]


def _molecular(runs: Iterable[Run]) -> list[tuple[Run, FedGraphNNOptions]]:
    found: list[tuple[Run, FedGraphNNOptions]] = []
    for run in runs:
        options = _MODEL.validate_python(run.config["model"])
        molecules = run.config["dataset"]["name"] in MOLECULES
        if run.status == "complete" and molecules and isinstance(options, FedGraphNNOptions):
            found.append((run, options))
    return found


def _row(run: Run, options: FedGraphNNOptions) -> SystemRow:
    life = run.lives[-1]
    name, kind = str(run.config["dataset"]["name"]), options.name.rpartition("/")[2]
    seconds = run.measured("round_seconds")
    per_round = float(np.median(seconds[1:] if len(seconds) > 1 else seconds))  # the first prepares molecules
    steps = float(run.results["steps"].sum())
    cpu = float(np.nansum(run.measured("client_cpu_seconds")))
    published = _WALL_S[kind].get(name)
    whole = None if published is None else published / PUBLISHED_ROUNDS
    sleeps = SLEEP_S * len(run.clients)
    work = None if whole is None else max(whole - SLEEP_S * PUBLISHED_CLIENTS, 0.0)
    shape = Shape(_WIDTH, len(run.partition["task_names"]))
    nodes = int(MOLECULES[name].published[1])
    sizes = run.partition["sizes"][:, 1:].sum()
    return SystemRow(
        dataset=name,
        algorithm=str(run.config["algorithm"]["name"]),
        model=kind,
        ranks=life.ranks,
        round_s=per_round,
        train_step_ms=1e3 * cpu / steps,
        published_s=whole,
        without_sleeps_s=work,
        with_sleeps_s=per_round + sleeps,
        parameters=int(max(life.provenance["parameters"])),
        published_flops=published_flops(options, shape, nodes),
        flops=round(float(run.results["evaluation_flops"][-1].sum()) / sizes),
    )
