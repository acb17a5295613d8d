"""FedGraphNN's Tables 6, 7 and 8 on this machine: seconds, FLOPs and parameters beside the published ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from pydantic import ValidationError

from fedmpi.analysis.summary import setting
from fedmpi.datasets.atoms import ONE_HOT_WIDTH
from fedmpi.datasets.moleculenet import MOLECULES
from fedmpi.models.fedgraphnn_flops import PUBLISHED_SLIPS, published_flops, published_node_flops
from fedmpi.models.options import MODELS, FedGraphNNOptions, MessagePassingOptions, Shape
from fedmpi.store.reader import Run

SLEEP_S = 0.3
"""The released server handles one message of a client per so many seconds."""

PUBLISHED_ROUNDS = 50
"""Rounds behind Table 6's times: not stated there; its sweeps and Table 2's scripts say 50."""

_SETS = ("SIDER", "BACE", "ClinTox", "BBBP", "Tox21", "FreeSolv", "ESOL", "Lipophilicity")
_RATINGS = ("Ciao", "Epinions")
_CITATIONS = ("CitationFull-Cora", "CitationFull-CiteSeer", "CitationFull-DBLP", "CitationFull-PubMed")

EGOS = {
    "CitationFull-Cora": (Shape(8710, 70), 80),
    "CitationFull-CiteSeer": (Shape(602, 6), 19),
    "CitationFull-DBLP": (Shape(1639, 4), 84),
    "CitationFull-PubMed": (Shape(500, 3), 59),
}
"""Features and classes, and nodes of an average ego-network, that Table 8's counts are of."""

_NO_MODEL = "no model of the released code has as many"
_COPIES = {
    (name, model): f"a copy of Table 6's {source}"
    for name, source in zip(_RATINGS, ("SIDER", "BACE"), strict=True)
    for model in ("gcn", "gat", "sage")
}


@dataclass(frozen=True)
class SystemTable:
    """What one of the tables prints.

    Attributes
    ----------
    name : str
    clients : int
    wall_s : mapping
        Seconds of whole runs on eight GPUs, data loading and evaluation included, by model and dataset.
    rounds : mapping
        Rounds of those, where they are stated, by dataset and model; else `PUBLISHED_ROUNDS`.
    flops : mapping
        FLOPs as printed that no count gives, by model, of `wall_s`'s datasets; and why not.
    """

    name: str
    clients: int
    wall_s: Mapping[str, Mapping[str, float]]
    rounds: Mapping[tuple[str, str], int] = field(default_factory=dict)
    flops: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)


TABLES = (
    SystemTable(
        "Table 6",
        clients=4,
        wall_s={
            "gcn": dict(zip(_SETS, (358, 297, 280, 253, 903, 252, 325, 974), strict=True)),
            "gat": dict(zip(_SETS, (528, 327, 457, 328, 1549, 384, 516, 1528), strict=True)),
            "sage": dict(zip(_SETS, (127, 238, 282, 206, 871, 353, 414, 928), strict=True)),
        },
    ),
    SystemTable(
        "Table 7",
        clients=8,
        wall_s={
            "gcn": dict(zip(_RATINGS, (352, 717), strict=True)),
            "gat": dict(zip(_RATINGS, (350, 749), strict=True)),
            "sage": dict(zip(_RATINGS, (551, 810), strict=True)),
        },
        rounds={
            **{(name, model): 100 for name in _RATINGS for model in ("gcn", "gat", "sage")},
            ("Ciao", "sage"): 50,
            ("Epinions", "gat"): 50,
        },
        flops={
            place: (printed, _COPIES[place])
            for place, printed in zip(
                _COPIES, ("697.3K", "703.4K", "846K", "605.1K", "612.1K", "758.6K"), strict=True
            )
        },
    ),
    SystemTable(
        "Table 8",
        clients=10,
        wall_s={
            "gcn": dict(zip(_CITATIONS, (833, 622, 654, 653), strict=True)),
            "gat": dict(zip(_CITATIONS, (871, 652, 682, 712), strict=True)),
            "sage": dict(zip(_CITATIONS, (774, 562, 622, 592), strict=True)),
        },
        rounds={(name, model): 100 for name in _CITATIONS for model in ("gcn", "gat", "sage")},
        flops={
            (name, "gat"): (printed, f"{_NO_MODEL} parameters")
            for name, printed in zip(_CITATIONS, ("47.8M", "845.3K", "9.5M", "2.3M"), strict=True)
        },
    ),
)

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


def _published(run: Run) -> tuple[Run, _Options, SystemTable] | None:
    """Return a run's model and the table that it is of; None where it is of none."""
    try:
        options = MODELS[run.config["model"]["name"]].model_validate(run.config["model"])
    except (KeyError, ValidationError):  # a model that this fedmpi does not know
        return None
    if run.status != "complete":
        return None
    name = run.config["dataset"]["name"]
    if isinstance(options, FedGraphNNOptions):
        return (run, options, TABLES[0]) if name in MOLECULES else None  # two of them have no times
    if isinstance(options, MessagePassingOptions):
        for table in TABLES[1:]:
            if name in table.wall_s.get(options.name, ()):
                return run, options, table
    return None


def _row(run: Run, options: _Options, table: SystemTable) -> SystemRow:
    attempt = run.attempts[-1]
    name, kind = str(run.config["dataset"]["name"]), options.name.rpartition("/")[2]
    seconds = run.measured("round_seconds")
    per_round = float(np.median(seconds[1:] if len(seconds) > 1 else seconds))  # the first prepares graphs
    steps = float(run.results["steps"].sum())
    cpu = float(np.nansum(run.measured("client_cpu_seconds")))
    algorithm = str(setting(run.config, "algorithm"))
    total = table.wall_s[kind].get(name) if algorithm == "fedavg" else None
    whole = None if total is None else total / table.rounds.get((name, kind), PUBLISHED_ROUNDS)
    work = None if whole is None else max(whole - SLEEP_S * table.clients, 0.0)
    return SystemRow(
        table=table.name,
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
        slip=_slip(name, kind, table),
    )


def _slip(name: str, kind: str, table: SystemTable) -> tuple[str, str] | None:
    if (name, kind) in PUBLISHED_SLIPS and table.name == "Table 6":
        printed, counted, why = PUBLISHED_SLIPS[name, kind]
        return printed, f"counted its way it is {counted} ({why})"
    return table.flops.get((name, kind))


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
