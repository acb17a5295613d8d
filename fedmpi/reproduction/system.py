"""FedGraphNN's Table 6 on this machine: seconds, FLOPs and parameters beside the published ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from pydantic import ValidationError

from fedmpi.analysis.summary import setting
from fedmpi.datasets.atoms import ONE_HOT_WIDTH
from fedmpi.datasets.moleculenet import MOLECULES
from fedmpi.models.fedgraphnn_flops import PUBLISHED_SLIPS, published_flops
from fedmpi.models.options import MODELS, FedGraphNNOptions, Shape
from fedmpi.store.reader import Run

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

_WIDTHS = {"original": 8, "attributes": 8, "scalar8": 8, "onehot": ONE_HOT_WIDTH, "constant": 1}
"""Input width of molecules by `dataset.features`; of the others it depends on the dataset."""

_ALONE = ("centralised", "self-train")
"""Algorithms whose clients send nothing to a server in a round."""


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
        The published seconds divided by `PUBLISHED_ROUNDS`; they are FedAvg's, of other algorithms None.
    without_sleeps_s : float or None
        The same less the released server's sleeps, `SLEEP_S` per client and round: an upper bound of
        what was work.
    with_sleeps_s : float or None
        Ours with those sleeps added; None where clients send nothing.
    parameters : int
    published_flops : int or None
        Forward FLOPs of an average molecule as the paper counts them, of the run's own widths; None where
        its features leave the input width open.
    flops : int
        They as they are, the mean over the held-out molecules.
    slip : (str, str, str) or None
        Where Table 6 prints another number of FLOPs than it counts: printed, counted, what went wrong.
    """

    dataset: str
    algorithm: str
    model: str
    ranks: int
    round_s: float
    train_step_ms: float
    published_s: float | None
    without_sleeps_s: float | None
    with_sleeps_s: float | None
    parameters: int
    published_flops: int | None
    flops: int
    slip: tuple[str, str, str] | None


def system_rows(runs: Iterable[Run]) -> list[SystemRow]:
    """Return a row per complete run of one of FedGraphNN's models on molecules; others are left out."""
    return [_row(run, options) for run, options in _molecular(runs)]


def _molecular(runs: Iterable[Run]) -> list[tuple[Run, FedGraphNNOptions]]:
    found: list[tuple[Run, FedGraphNNOptions]] = []
    for run in runs:
        try:
            options = MODELS[run.config["model"]["name"]].model_validate(run.config["model"])
        except (KeyError, ValidationError):  # a model that this fedmpi does not know
            continue
        molecules = run.config["dataset"]["name"] in MOLECULES
        if run.status == "complete" and molecules and isinstance(options, FedGraphNNOptions):
            found.append((run, options))
    return found


def _row(run: Run, options: FedGraphNNOptions) -> SystemRow:
    attempt = run.attempts[-1]
    name, kind = str(run.config["dataset"]["name"]), options.name.rpartition("/")[2]
    seconds = run.measured("round_seconds")
    per_round = float(np.median(seconds[1:] if len(seconds) > 1 else seconds))  # the first prepares molecules
    steps = float(run.results["steps"].sum())
    cpu = float(np.nansum(run.measured("client_cpu_seconds")))
    algorithm = str(setting(run.config, "algorithm"))
    total = _WALL_S[kind].get(name) if algorithm == "fedavg" else None
    whole = None if total is None else total / PUBLISHED_ROUNDS
    work = None if whole is None else max(whole - SLEEP_S * PUBLISHED_CLIENTS, 0.0)
    sizes = run.partition["sizes"][:, 1:].sum()
    return SystemRow(
        dataset=name,
        algorithm=algorithm,
        model=kind,
        ranks=attempt.ranks,
        round_s=per_round,
        train_step_ms=1e3 * cpu / steps,
        published_s=whole,
        without_sleeps_s=work,
        with_sleeps_s=None if algorithm in _ALONE else per_round + SLEEP_S * len(run.clients),
        parameters=int(max(attempt.provenance["parameters"])),
        published_flops=_as_published(run, options),
        flops=round(float(run.results["evaluation_flops"][-1].sum()) / sizes),
        slip=PUBLISHED_SLIPS.get((name, kind)),
    )


def _as_published(run: Run, options: FedGraphNNOptions) -> int | None:
    dataset = run.config["dataset"]
    width = _WIDTHS.get(dataset["features"])
    if width is None:
        return None
    shape = Shape(width, len(run.partition["task_names"]))
    return published_flops(options, shape, int(MOLECULES[dataset["name"]].published[1]))
