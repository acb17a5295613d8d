"""The files that are damaged: small, real, and made once per session."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas

from fedmpi.case.initial import SUFFIXES
from fedmpi.datasets.raw import digest
from fedmpi.datasets.source import DataSource
from fedmpi.store import embeddings
from tests.datasets.ogb_folders import drawn, write
from tests.fuzz.server import ROOT, Ended, Server
from tests.mpi.examples import EXAMPLES

SUITE = """
name = "fuzz"
[case]
dataset = { name = "synthetic", synthetic = { domains = 2, graphs = 24 } }
partition = "per-dataset"
rounds = 4
seed = 3
batch_size = 8
kernels = "csr"
checkpoint_seconds = 0.0
[matrix]
case = [
    { label = "whole", algorithm = "fedavg" },
    { label = "vectors", algorithm = "fedavg", objective = "infograph", model = { name = "gin-encoder", hidden = 8, layers = 2 }, share = "all", rounds = 1, evaluation = { embeddings = [1] }, dataset = { synthetic = { domains = 1, graphs = 48 } }, partition = { name = "dominant-share", clients = 2 } },
]
"""


def make(path: Path, server: Server) -> Path:
    """Make the files below `path`."""
    (path / "suite.toml").write_text(SUITE)
    (path / "plugin.py").write_text(EXAMPLES["sam.py"][0])
    shutil.copy(ROOT / "jobs/systems/generic-cpu.toml", path / "system.toml")
    _graphs(path)
    run = ("run", "suite.toml", "--case")
    _good(server.run(path, *run, "whole", "--out", "runs", trains=True))
    _good(server.run(path, *run, "vectors", "--out", "runs", trains=True))
    stop = "tests.fuzz.home:stop_in_the_second_round"
    _good(server.run(path, *run, "whole", "--out", "stopped", call=stop, trains=True), 75)
    _good(server.run(path, "report", "runs/whole", "--csv", "rows.csv"))
    _good(server.run(path, "records", "pack", "runs", "--out", "bundle.tar.gz"))
    with tarfile.open(path / "bundle.tar.gz") as archive:
        archive.extractall(path / "unpacked", filter="data")
    _good(server.run(path, "data", "fetch", "FUZZ", "own/OWN", "--mirror", "mirror", "--data", "cache"))
    for suffix in SUFFIXES:
        file = f"models/mine{suffix}"
        (path / "models").mkdir(exist_ok=True)
        _good(server.run(path, "export", "runs/whole", "--client", "synthetic-0", "--model", file))
    if known := os.environ.get("FEDMPI_MIRROR"):
        (path / "mirror" / "moleculenet").mkdir()
        shutil.copy(Path(known) / "moleculenet" / "SAMPL.csv", path / "mirror" / "moleculenet")
    return path


def _good(ended: Ended, *codes: int) -> None:
    assert ended.code in (codes or (0,)), ended


def stop_in_the_second_round() -> None:
    """Run the program and ask it to stop while it trains its second round."""
    from fedmpi.cli.main import main
    from fedmpi.client.client import Client

    original = Client.train_locally

    def train(self: Client, case: object, algorithm: object, round: int) -> object:
        if round == 1:
            os.kill(os.getpid(), signal.SIGUSR1)
        return original(self, case, algorithm, round)

    Client.train_locally = train  # type: ignore[method-assign]
    main()


def _source(cache: str) -> DataSource:
    return DataSource.from_environment(Path(cache), Path("mirror"), True)


def load_dataset() -> None:
    """Print the digest of a dataset in a cache as a run maps it: ``NAME CACHE``."""
    name, cache = sys.argv[1:]
    source = _source(cache)
    source.check(name)
    source.prepare(name)
    print(digest(source.load(name)))


def check_dataset() -> None:
    """Check, as before a run, that a dataset can be had: ``NAME CACHE``."""
    name, cache = sys.argv[1:]
    _source(cache).check(name)


def check_files() -> None:
    """Check all saved graphs of a folder as before a run: ``FOLDER CACHE``."""
    folder, cache = sys.argv[1:]
    for path in sorted(Path(folder).glob("*.pt")):
        _source(cache).check(f"./{path}")


def load_model() -> None:
    """Print all tensors of the model of a file, and have it predict: ``FILE``."""
    import torch
    from torch_geometric.data import Data

    import fedmpi

    model = fedmpi.load_model(sys.argv[1])
    print({name: each.numpy().tobytes().hex() for name, each in model.network.state_dict().items()})
    path = torch.tensor([[0, 1], [1, 0]])
    model.embed(Data(x=torch.ones(2, model.about.num_features), edge_index=path))
    model.predict(Data(edge_index=path, num_nodes=2))


def load_embeddings() -> None:
    """Print the content of a run's embeddings: ``RUN``."""
    for round, arrays in embeddings.load(Path(sys.argv[1])).items():
        print(round, {name: array.tobytes().hex() for name, array in arrays.items()})


def _saved(path: Path) -> None:
    """Save graphs, and a graph whose nodes have labels."""
    import torch
    from torch_geometric.data import Data

    nodes = torch.arange(6)
    ends = torch.stack([nodes, (nodes + 1) % 6])
    ring = {"x": torch.ones(6, 2), "edge_index": ends, "edge_attr": torch.ones(6, 1)}
    torch.save(
        [Data(**ring, y=label % 2, client=label % 3, split="train") for label in range(9)], path / "graphs.pt"
    )
    torch.save(Data(**ring, y=nodes % 2, client=nodes % 2, train_mask=nodes < 3), path / "network.pt")


def _graphs(path: Path) -> None:
    """Write 30 small graphs in TU format: two folders, and an archive in a mirror."""
    pairs = [(2 * graph + 1, 2 * graph + 2) for graph in range(30)]
    rows = {
        "A": "".join(f"{a}, {b}\n{b}, {a}\n" for a, b in pairs),
        "graph_indicator": "".join(f"{graph + 1}\n{graph + 1}\n" for graph in range(30)),
        "graph_labels": "".join(f"{graph % 2}\n" for graph in range(30)),
        "node_labels": "".join(f"{graph % 3}\n{graph % 2}\n" for graph in range(30)),
        "node_attributes": "".join(f"{graph}.5, 1e-3\n0.25, -7\n" for graph in range(30)),
    }
    (path / "mirror" / "tudataset").mkdir(parents=True)
    for method, name in ((zipfile.ZIP_STORED, "FUZZ"), (zipfile.ZIP_DEFLATED, "PACKED")):
        with zipfile.ZipFile(path / "mirror" / "tudataset" / f"{name}.zip", "w", method) as archive:
            for part, text in rows.items():
                archive.writestr(f"{name}/{name}_{part}.txt", text)
    rows["edge_labels"] = "".join(f"{graph % 4}\n{graph % 3}\n" for graph in range(30))
    rows["edge_attributes"] = "".join(f"{graph}.5, 1e-3\n0.25, -7\n" for graph in range(30))
    rows["client"] = "".join(f"{graph % 3}\n" for graph in range(30))
    rows["graph_split"] = "".join(f"{('train', '', 'val', 'test')[graph % 4]}\n" for graph in range(30))
    texts = "".join(f"{('', 'toxic', 'not toxic')[graph % 3]}\n" for graph in range(30))
    for name, changed in (("OWN", {}), ("TEXT", {"graph_labels": texts})):
        (path / "own" / name).mkdir(parents=True)
        for part, text in (rows | changed).items():
            (path / "own" / name / f"{name}_{part}.txt").write_text(text)
    _saved(path / "own")
    _benchmarks(path / "own")
    molecules = (f"{'C' * (row % 9 + 1)},{row % 2},{'ab'[row % 2]},train,{row % 3}\n" for row in range(30))
    record = (
        "{0}\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n"
        "    0.0000    0.0000    0.0000 C   0  0\nM  END\n>  <label>\n{0}\n\n$$$$\n"
    )
    (path / "own" / "mine.sdf").write_text("".join(map(record.format, range(9))))
    (path / "own" / "mine.csv").write_text("".join(["smiles,label,client,split,weight\n", *molecules]))
    pandas.read_csv(path / "own" / "mine.csv").to_parquet(path / "own" / "mine.parquet")


def _benchmarks(path: Path) -> None:
    """Write two folders in OGB's format, one of graphs and one of nodes."""
    files = drawn()
    for name in ("train", "valid", "test"):
        files[f"split/random/{name}"] = files.pop(f"split/scaffold/{name}")
    write(path / "ogbg", files)
    labels = files.pop("raw/graph-label")
    nodes = np.arange(int(files["raw/num-node-list"].sum()))
    write(path / "ogbn", files | {"raw/node-label": labels[nodes % len(labels)]})
