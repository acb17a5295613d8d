"""Runs whose models are taken home, and the graphs of their clients."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch_geometric.data import Data

from fedmpi.client.federation import assemble, deal, load
from fedmpi.config.tables import toml_document
from fedmpi.datasets.source import DataSource
from fedmpi.graphs.batch import Batch
from fedmpi.registry.check import check_stored
from fedmpi.store.reader import load_run

CASE = {
    "dataset": {"name": "synthetic", "synthetic": {"domains": 3, "graphs": 40}},
    "partition": "per-dataset",
    "rounds": 2,
    "seed": 3,
    "kernels": "csr",
}


@pytest.fixture
def command(fedmpi):
    """The command line, beside the package of that name."""
    return fedmpi


@pytest.fixture
def trained(fedmpi, tmp_path):
    """Return a function that runs a case and returns its folder."""

    def run(**settings) -> Path:
        suite = {"name": "home", "case": CASE | {"algorithm": "fedavg"} | settings}
        (tmp_path / "home.toml").write_text(toml_document(suite))
        fedmpi("run", "home.toml", "--out", "runs", code=0)
        (folder,) = (tmp_path / "runs").iterdir()
        return folder

    return run


def federation_of(folder: Path) -> SimpleNamespace:
    """Return a run with its case and federation."""
    run = load_run(folder)
    checked, source = check_stored(run.config, folder), DataSource.from_environment()
    raws = load(checked.case, source)
    federation = assemble(checked.case, raws, deal(checked.case, checked.algorithm, raws), source.cache)
    return SimpleNamespace(run=run, case=checked.case, federation=federation)


def held_out_of(folder: Path, client: int) -> SimpleNamespace:
    """Return a client's validation graphs followed by its test graphs, and the place of the first of these."""
    found = federation_of(folder)
    split = found.federation.partition.clients[client]
    graphs = found.federation.data(found.case, client)[1]
    cut = len(split.examples(found.federation.raws[split.dataset], "val"))
    return SimpleNamespace(graphs=graphs, cut=cut, task=found.federation.task, run=found.run)


def all_of(folder: Path, client: int):
    """Return all graphs of a client of an unsupervised run."""
    found = federation_of(folder)
    return found.federation.graphs(found.case, found.federation.partition.clients[client].graphs)


def listed(graphs, *, x=True) -> list[Data]:
    """Return packed graphs as torch-geometric has them."""
    batch, found = Batch.of(graphs), []
    for number in range(graphs.num_graphs):
        first, last = graphs.topology.graph_ptr[number : number + 2].tolist()
        inside = (batch.edge_index[1] >= first) & (batch.edge_index[1] < last)
        one = Data(edge_index=batch.edge_index[:, inside] - first, num_nodes=last - first)
        if x:
            one.x = batch.x[first:last]
        if batch.edges is not None:
            one.edge_attr = batch.edges[inside]
        found.append(one)
    return found


def outcome_of(model, held_out):
    """Return what the run's task says of a client's test examples."""
    batch = Batch.of(held_out.graphs)
    with torch.no_grad():
        outputs = model.network(batch, None, model.kernels)
    return held_out.task.outcome(outputs, batch.labels).part(slice(held_out.cut, None))
