"""FedGraphNN's Tables 6, 7 and 8 on this machine: seconds, FLOPs and parameters beside the published ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from pydantic import ValidationError

from fedmpi.analysis.summary import setting
from fedmpi.config import locations
from fedmpi.datasets.atoms import ONE_HOT_WIDTH
from fedmpi.datasets.families.moleculenet import MOLECULES
from fedmpi.models.fedgraphnn_flops import PUBLISHED_SLIPS, published_flops, published_node_flops
from fedmpi.models.options import MODELS, FedGraphNNOptions, MessagePassingOptions, Shape
from fedmpi.reproduction.published import table
from fedmpi.store.reader import Run

SLEEP_S = 0.3
"""The released server handles one message of a client per so many seconds."""

PUBLISHED_ROUNDS = 50
"""Rounds behind Table 6's times: not stated there; its sweeps and Table 2's scripts say 50."""

_RATINGS = ("Ciao", "Epinions")

EGOS = {
    "CitationFull-Cora": (Shape(8710, 70), 80),
    "CitationFull-CiteSeer": (Shape(602, 6), 19),
    "CitationFull-DBLP": (Shape(1639, 4), 84),
    "CitationFull-PubMed": (Shape(500, 3), 59),
}
"""Features and classes, and nodes of an average ego-network, that Table 8's counts are of."""

_COLUMNS = ("table", "dataset", "model", "clients", "seconds", "rounds", "flops", "slip")


Printed = Mapping[str, str]
"""What one of the tables prints of a cell, by `_COLUMNS`: seconds are of a whole run on eight GPUs, data
loading and evaluation included; FLOPs have a slip where no count gives what is printed."""


@cache
def _cells() -> dict[tuple[str, str], Printed]:
    """Return the cells of all tables by dataset and model."""
    rows: list[dict[str, str]] = table(
        locations.find("fedgraphnn/table6").with_name("system.csv"), dict, _COLUMNS
    )
    return {(row["dataset"], row["model"]): row for row in rows}


_WIDTHS = {"original": 8, "attributes": 8, "scalar8": 8, "onehot": ONE_HOT_WIDTH, "constant": 1}
"""Input width of molecules by `dataset.features`; of the others it depends on the dataset."""

_ALONE = ("centralised", "self-train")
"""Algorithms whose clients send nothing to a server in a round."""


@dataclass(frozen=True)
class SystemRow:
    """One cell of a table.

    Attributes
    ----------
    table, dataset, algorithm, model : str
    ranks : int
    round_s : float
        Median seconds per round.
    train_step_ms : float
        CPU time of a local step.
    published_s : float or None
        The published seconds of a round; they are FedAvg's, of other algorithms None.
    without_sleeps_s : float or None
        The same less the released server's sleeps, `SLEEP_S` per client and round: an upper bound of
        what was work.
    with_sleeps_s : float or None
        Ours with those sleeps added; None where clients send nothing.
    parameters : int
    published_flops : int or None
        Forward FLOPs of an average graph as the paper counts them, of the run's own widths; None where
        its features leave the input width open, or the paper's figure is no count.
    flops : int
        They as they are, the mean over the held-out graphs.
    slip : (str, str) or None
        Where the paper prints another number of FLOPs than it counts: printed, what went wrong.
    """

    table: str
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
    slip: tuple[str, str] | None


def system_rows(runs: Iterable[Run]) -> list[SystemRow]:
    """Return a row per complete run of one of FedGraphNN's cells; others are left out."""
    return [row for run in runs if run.status == "complete" and (row := _row(run)) is not None]


_Options = FedGraphNNOptions | MessagePassingOptions


def _row(run: Run) -> SystemRow | None:
    """Return a run's row; None where no table has its cell."""
    printed = _cells().get((str(setting(run.config, "dataset")), str(setting(run.config, "model"))))
    if printed is None:
        return None
    try:
        options = MODELS[run.config["model"]["name"]].model_validate(run.config["model"])
    except ValidationError:  # settings that this fedmpi does not know
        return None
    assert isinstance(options, _Options)
    name, kind = str(run.config["dataset"]["name"]), options.name.rpartition("/")[2]
    algorithm = str(setting(run.config, "algorithm"))
    round_s = _per_round(run)
    published_s = without_sleeps_s = None
    if algorithm == "fedavg" and printed["seconds"]:
        published_s = float(printed["seconds"]) / int(printed["rounds"] or PUBLISHED_ROUNDS)
        without_sleeps_s = max(published_s - SLEEP_S * int(printed["clients"]), 0.0)
    cpu_seconds = float(np.nansum(run.measured("client_cpu_seconds")))
    return SystemRow(
        table=printed["table"],
        dataset=name,
        algorithm=algorithm,
        model=kind,
        ranks=run.attempts[-1].ranks,
        round_s=round_s,
        train_step_ms=1e3 * cpu_seconds / float(run.results["steps"].sum()),
        published_s=published_s,
        without_sleeps_s=without_sleeps_s,
        with_sleeps_s=None if algorithm in _ALONE else round_s + SLEEP_S * len(run.clients),
        parameters=int(max(run.attempts[-1].provenance["parameters"])),
        published_flops=_as_published(run, options),
        flops=round(float(run.results["evaluation_flops"][-1].sum()) / _graphs(run)),
        slip=_slip(name, kind, printed),
    )


def _per_round(run: Run) -> float:
    seconds = run.measured("round_seconds")
    return float(np.median(seconds[1:] if len(seconds) > 1 else seconds))  # the first prepares graphs


def _slip(name: str, kind: str, printed: Printed) -> tuple[str, str] | None:
    if (name, kind) in PUBLISHED_SLIPS and printed["table"] == "Table 6":
        shown, counted, why = PUBLISHED_SLIPS[name, kind]
        return shown, f"counted its way it is {counted} ({why})"
    return (printed["flops"], printed["slip"]) if printed["slip"] else None


def _graphs(run: Run) -> float:
    """Return how many graphs an evaluation works on: molecules, clients' graphs, or ego-networks."""
    ratings = run.config["dataset"]["name"] in _RATINGS
    return len(run.clients) if ratings else float(run.partition["sizes"][:, 1:].sum())


def _as_published(run: Run, options: _Options) -> int | None:
    dataset = run.config["dataset"]
    name, width = dataset["name"], _WIDTHS.get(dataset["features"])
    if name in EGOS and options.name in ("gcn", "sage"):
        shape, nodes = EGOS[name]
        return published_node_flops(options.name, shape, options.hidden, nodes)
    if not isinstance(options, FedGraphNNOptions) or width is None:
        return None
    shape = Shape(width, len(run.partition["task_names"]))
    return published_flops(options, shape, int(MOLECULES[name].published[1]))
