"""Sums of figures over clients, and what commands show of a run that has nothing else."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fedmpi.analysis import figures as pictures
from fedmpi.comm.world import World
from fedmpi.errors import BadInput
from fedmpi.exchange.key_ring import KeyRing
from fedmpi.exchange.masked import Masked
from fedmpi.exchange.totals import MOST_CLIENTS, Totals
from fedmpi.secure.protocols import LightSecAgg, SecAgg
from fedmpi.store.reader import load_run
from tests.secure.sums import meter_of

SUITE = """
name = "together"
[case]
dataset = { name = "synthetic", synthetic = { domains = 4, graphs = 30 } }
partition = "per-dataset"
model = { hidden = 8 }
rounds = 3
algorithm = "fedavg"
reduction = "lightsecagg"
record = "protocol"
participation = 0.6
"""
LINE = 'record = "protocol": values of single clients are not recorded'


def figures(num_clients, kind, width):
    collectives, hosts = World().collectives, np.zeros(num_clients, np.int64)
    keys = KeyRing(collectives, hosts, renewed=False)

    def sums(size, clip):
        protocol = SecAgg(size, 0.5, 4) if kind == "secagg+" else LightSecAgg(size, 0.7, 0.5)
        return Masked(collectives, hosts, protocol, clip, size, keys, meter_of(collectives), announces=False)

    return Totals(sums, num_clients, width)


@pytest.mark.parametrize("kind", ["secagg+", "lightsecagg"])
@pytest.mark.parametrize("num_clients", [2, 3, 7, 33])
def test_sums_are_exact(kind, num_clients):
    random = np.random.default_rng(num_clients)
    values = {n: [*random.integers(0, 2**60, 3).tolist(), 2**60 - 1, n] for n in range(num_clients)}
    expected = [sum(column) for column in zip(*values.values(), strict=True)]
    assert figures(num_clients, kind, 5).sums(np.arange(num_clients), values) == expected


def test_the_smallest_digits_are_bits_and_their_sums_exact():
    class Fixed:
        """The sums of "fixed32", without masks."""

        def __init__(self, size, clip):
            self.size, self.clip = size, clip

        def means(self, groups, clients, weights, held):
            reduction = Fixed32(len(clients), self.clip)
            return {0: reduction.decode(sum(reduction.encode(held[int(n)], 1) for n in clients))}

    from fedmpi.comm.reductions import Fixed32

    values = {n: [2**60 - 1 - n] for n in range(MOST_CLIENTS)}
    found = Totals(Fixed, MOST_CLIENTS, 1).sums(np.arange(MOST_CLIENTS), values)
    assert found == [sum(value for (value,) in values.values())]


@pytest.mark.parametrize("num_clients", [1, 4])
def test_one_client_is_no_sum(num_clients):
    alone = num_clients - 1
    assert figures(num_clients, "lightsecagg", 1).sums(np.array([alone]), {alone: [5]}) is None


@pytest.mark.parametrize("domains", [1, 4])
def test_figures_of_one_client_are_not_in_the_record(fedmpi, tmp_path, domains):
    """Of a federation of one client, or of rounds with one participant."""
    (tmp_path / "suite.toml").write_text(SUITE.replace("0.6", f"{1 / domains}"))
    options = f"dataset.synthetic.domains={domains}", "evaluation.clients=participants"
    settings = [text for option in options for text in ("--set", option)]
    assert fedmpi("run", "suite.toml", *settings, "--out", "runs").returncode == 0
    (folder,) = (tmp_path / "runs").iterdir()
    found = load_run(folder).results
    for part in ("train", "val", "test"):
        assert np.isnan(found[f"{part}_loss"]).all() and np.isnan(found[f"{part}_accuracy"]).all()


def test_commands_say_that_no_values_of_clients_are_there(fedmpi, tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    assert fedmpi("run", "suite.toml", "--out", "runs").returncode == 0
    (folder,) = (tmp_path / "runs").iterdir()
    found = load_run(folder).results
    assert found["test_accuracy"].shape == (3,) and np.isfinite(found["test_loss"]).all()
    for command in (["report", folder], ["watch", folder, "--once"]):
        done = fedmpi(*command)
        assert done.returncode == 0 and LINE in " ".join(done.stdout.split())
    page = tmp_path / "page.html"
    assert fedmpi("report", folder, "--html", page).returncode == 0
    assert "values of single clients are not recorded" in page.read_text()
    for command in (
        ["report", folder, "--json"],
        ["report", folder, "--csv", "rows.csv"],
        ["report", folder, "--markdown"],
        ["compare", folder, folder],
        ["export", folder, "--tensorboard", "board"],
        ["plot", "losses", folder, "--image", "losses.png"],
        ["scaling", folder],
    ):
        done = fedmpi(*command)
        assert done.returncode == 0, done.stderr
    done = fedmpi("plot", "gradient-norms", folder)
    assert done.returncode == 2 and LINE in done.stderr
    rates = json.loads(fedmpi("scaling", folder, "--json").stdout)["throughput"][0]
    assert rates["gflop"] is rates["graphs"] is None and rates["updates"] > 0
    shown = fedmpi("scaling", folder, "--predict", "2").stdout
    assert f"Model: none; {LINE}" in " ".join(shown.split()) and "nan" not in shown
    done = fedmpi("plot", "gains", folder)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    odd = {name: value for name, value in load_run(folder).config.items() if name != "rounds"}
    run = replace(load_run(folder), config=odd | {"algorithm": {"name": "self-train"}})
    for kind in map(pictures.load, ("gains", "losses")):
        with pytest.raises(BadInput, match="its configuration has no rounds; leave it out"):
            pictures.picture(kind(), [run])


NODES = """
name = "nodes"
[case]
dataset = { name = "synthetic-nodes", egos = { number = 60, hops = 1 } }
partition = { name = "fedgraphnn", clients = 4, alpha = 2.0 }
model = { name = "gcn", layers = 1, head_layers = 1 }
algorithm = "fedavg"
reduction = "secagg"
share = "all"
rounds = 2
[matrix]
record = ["full", "protocol"]
"""


def test_examples_are_counted_where_a_graph_holds_several(fedmpi, tmp_path):
    (tmp_path / "suite.toml").write_text(NODES)
    assert fedmpi("run", "suite.toml", "--out", "runs").returncode == 0
    whole, full = (
        next(run for run in map(load_run, (tmp_path / "runs").iterdir()) if ("record" in run.config) is mark)
        for mark in (True, False)
    )
    for part in ("val", "test"):
        wanted = full.results[f"{part}_micro_f1"].tolist()  # the share of right predictions
        assert whole.results[f"{part}_accuracy"].tolist() == wanted


@pytest.mark.parametrize(
    ("lr", "batch_size"),
    [
        ("1e30", 128),  # not finite after one step
        ("10.0", 8),  # finite, and in training more than 2^40
        ("1e5", 128),  # the same of the new model alone
    ],
)
def test_a_client_that_diverges_is_named(fedmpi, tmp_path, lr, batch_size):
    (tmp_path / "suite.toml").write_text(SUITE.replace("0.6", "1.0"))
    settings = "--set", f"optimizer.lr={lr}", "--set", f"batch_size={batch_size}"
    done = fedmpi("run", "suite.toml", *settings, "--out", "runs")
    assert done.returncode == 3
    assert "round 1: client synthetic-0 has a NaN or infinite loss or update" in done.stdout
    (folder,) = (tmp_path / "runs").iterdir()
    assert load_run(folder).status == "diverged"
