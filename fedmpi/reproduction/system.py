"""FedGraphNN's Tables 6, 7 and 8 on this machine: seconds, FLOPs and parameters beside the published ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from pydantic import ValidationError

from fedmpi.analysis.summary import setting
from fedmpi.config import locations
from fedmpi.datasets.atoms import ONE_HOT_WIDTH
from fedmpi.datasets.moleculenet import MOLECULES
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


@dataclass(frozen=True)
class Printed:
    """What one of the tables prints of a cell.

    Attributes
    ----------
    table : str
    clients : int
    seconds : float or None
        Of a whole run on eight GPUs, data loading and evaluation included; None where no table has it.
    rounds : int
        Rounds of that; `PUBLISHED_ROUNDS` where they are not stated.
    slip : (str, str) or None
        FLOPs as printed that no count gives, and why not.
    """

    table: str
    clients: int
    seconds: float | None
    rounds: int
    slip: tuple[str, str] | None


@cache
def _cells() -> dict[tuple[str, str], Printed]:
    """Return the cells of all tables by dataset and model."""
    found = {}
    for row in table(locations.find("fedgraphnn/table6").with_name("system.csv"), _COLUMNS):
        found[row["dataset"], row["model"]] = Printed(
            row["table"],
            int(row["clients"]),
            float(row["seconds"]) if row["seconds"] else None,
            int(row["rounds"] or PUBLISHED_ROUNDS),
            (row["flops"], row["slip"]) if row["slip"] else None,
        )
    return found


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
    return [_row(*each) for each in map(_published, runs) if each is not None]


_Options = FedGraphNNOptions | MessagePassingOptions


def _published(run: Run) -> tuple[Run, _Options, Printed] | None:
    """Return a run's model and what is printed of its cell; None where it is of none."""
    printed = _cells().get((str(setting(run.config, "dataset")), str(setting(run.config, "model"))))
    if printed is None or run.status != "complete":
        return None
    try:
        options = MODELS[run.config["model"]["name"]].model_validate(run.config["model"])
    except ValidationError:  # settings that this fedmpi does not know
        return None
    assert isinstance(options, _Options)
    return run, options, printed


def _row(run: Run, options: _Options, printed: Printed) -> SystemRow:
    attempt = run.attempts[-1]
    name, kind = str(run.config["dataset"]["name"]), options.name.rpartition("/")[2]
    seconds = run.measured("round_seconds")
    per_round = float(np.median(seconds[1:] if len(seconds) > 1 else seconds))  # the first prepares graphs
    steps = float(run.results["steps"].sum())
    cpu = float(np.nansum(run.measured("client_cpu_seconds")))
    algorithm = str(setting(run.config, "algorithm"))
    seconds_of_run = printed.seconds if algorithm == "fedavg" else None
    whole = None if seconds_of_run is None else seconds_of_run / printed.rounds
    work = None if whole is None else max(whole - SLEEP_S * printed.clients, 0.0)
    return SystemRow(
        table=printed.table,
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
        flops=round(float(run.results["evaluation_flops"][-1].sum()) / _graphs(run)),
        slip=_slip(name, kind, printed),
    )


def _slip(name: str, kind: str, printed: Printed) -> tuple[str, str] | None:
    if (name, kind) in PUBLISHED_SLIPS and printed.table == "Table 6":
        shown, counted, why = PUBLISHED_SLIPS[name, kind]
        return shown, f"counted its way it is {counted} ({why})"
    return printed.slip


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
