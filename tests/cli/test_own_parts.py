"""Runs with models, partitions and datasets that a file of the user's defines."""

import subprocess
import sys

import pytest

from tests.cli.refusals import refused
from tests.started import sets
from tests.test_layers import without_torch

MODEL = """
from typing import Literal
from fedmpi.models.options import NetworkOptions

class Plain(NetworkOptions):
    name: Literal["plain"] = "plain"

    def network(self, shape):
        import torch
        class Network(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = torch.nn.Linear({width}, 8)
                self.readout = torch.nn.Linear(8, shape.classes)
            def forward(self, batch, streams, kernels="csr"):
                return self.readout(self.embed(batch, streams))
            def embed(self, batch, streams, kernels="csr"):
                return batch.mean_graphs(self.conv(batch.x[:, : {width}]))
        return {returned}
"""
PARTITION = """
from typing import Literal
from fedmpi.partition.options import OneDataset

class Odd(OneDataset):
    name: Literal["odd"] = "odd"
    def deal(self, raw, classes): {body}
"""
FAMILY = """
import numpy as np
from fedmpi.datasets.family import Family
from fedmpi.datasets.raw import RawGraphs
from fedmpi.graphs.packed import Topology

class Dots(Family):
    name = "dots"
    names = ("dots",)
    def read(self, path, name):
        nothing, count = np.zeros(0, np.int64), {count}
        topology = Topology(np.arange(count + 1), np.zeros(count + 1, np.int64), nothing)
        return RawGraphs(name, topology, None, (), None, np.arange(count) % 2, ("even", "odd"))
"""


@pytest.fixture
def own(plugged, tiny_suite):
    """Return a function that writes a plug-in and runs a suite of one case with it."""

    def run(text, *settings):
        options = sets("rounds=2", *settings)
        return plugged(text, "run", tiny_suite, "--case", "0", *options, "--out", "runs")

    return run


def test_a_run_of_an_edited_model_is_refused(own):
    text = MODEL.format(width=4, returned="Network()")
    first = own(text, "model=plain")
    assert first.returncode == 0, first.stderr
    assert "model FLOPs are counted by torch on one batch: plain brings no formula" in first.stdout
    refused(own(text + "# edited\n", "model=plain"), "was made with another version of own.py (sha256 ")


@pytest.mark.long
def test_a_tensor_of_another_shape_on_another_client_is_named(tmp_path, tiny_suite):
    (tmp_path / "own.py").write_text(MODEL.format(width="shape.width", returned="Network()"))
    words = ("run", tiny_suite, "--case", "0", "--plugin", "own.py", "--set", "model=plain")
    command = [sys.executable, "-m", "fedmpi", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "fedmpi: algorithm fedavg: hook shares lets conv.weight leave, which is 8 x 4 for client synthetic-0 and "
        "8 x 5 for client synthetic-1: what is shared must not depend on a client's features, of nodes or edges, and classes\n"
    )


NETWORK, GRAPHS = MODEL.format(width=4, returned="Network()"), FAMILY.format(count="40")
PLAIN, DOTS, ODD = ("model=plain",), ("dataset=dots",), ("dataset.synthetic.domains=1", "partition=odd")
RAISED = "own.py raised ZeroDivisionError: division by zero"
ONCE = "it may be trained on and judged by; deal each once, or define overlaps() that returns True"


def network(old, new):
    return NETWORK.replace(old, new)


def dealt(body):
    return PARTITION.format(body=f"return {body}")


OWN = "super().__init__()"
DRAWN = f"{OWN}; self.scale = torch.nn.Parameter(torch.randn(3))"
SEED = "not from the seed: draw it in a method reset_parameters() of that module"
NO_BATCH = "'Batch' object has no attribute 'y'"
PLACED = GRAPHS.replace('"odd"))', '"odd"), places=np.arange(count))')
SAY = (
    "dataset family dots: its `examples` say graphs, `places` of dots are those of nodes: correct one of them"
)
NO_PARAMETERS = "model plain: its network must be a torch.nn.Module with parameters"
TWICE = "partition 'odd' deals graph 0 twice to client-00"
TWO = f"partition 'odd' deals graph 19 to client-00 and to client-01: {ONCE}"
WRONG = {
    "network": (PLAIN, network("return Network()", "return 1 / 0"), f"model plain: {RAISED}"),
    "no network": (PLAIN, network("return Network()", "return torch.nn.ReLU()"), NO_PARAMETERS),
    "forward": (
        PLAIN,
        network("batch.x[", "batch.y["),
        f"model plain: own.py raised AttributeError: {NO_BATCH}",
    ),
    "unseeded": (PLAIN, network(OWN, DRAWN), f"model plain: scale is drawn where its module is made, {SEED}"),
    "deal": (ODD, dealt("1 / 0"), f"partition odd: {RAISED}"),
    "numbers": (ODD, dealt("[[0, 40]]"), "partition 'odd' deals what are no graph numbers from 0 to 39"),
    "nobody": (ODD, dealt("[]"), "partition 'odd' deals to no client"),
    "twice": (ODD, dealt("[[*range(20)] * 2, [*range(20, 40)]]"), f"{TWICE}: {ONCE}"),
    "to two": (ODD, dealt("[[*range(20)], [*range(19, 40)]]"), TWO),
    "read": (DOTS, FAMILY.format(count="1 / 0"), f"dataset family dots: {RAISED}"),
    "examples": (DOTS, PLACED, SAY),
}


@pytest.mark.parametrize(("settings", "text", "words"), WRONG.values(), ids=WRONG)
def test_what_a_plugin_does_wrong_is_one_line_and_no_run(own, tmp_path, settings, text, words):
    refused(own(text, *settings), f"fedmpi: {words}\n")
    assert not list(tmp_path.glob("runs/*/run.h5"))


def test_a_partition_that_says_so_deals_a_graph_to_two_clients(own):
    text = PARTITION.format(body="return [[*range(20)], [*range(10, 40)]]")
    done = own(text + "    def overlaps(self): return True\n", *ODD)
    assert done.returncode == 0, done.stderr


def test_an_edited_family_is_prepared_anew(plugged, tmp_path):
    for count in (60, 70):
        text, data = FAMILY.format(count=count), ("--data", "cache")
        assert plugged(text, "data", "fetch", "dots", *data).returncode == 0
        assert f"dots: ok, {count} graphs" in plugged(text, "data", "verify", "dots", *data).stdout
        assert "dots  classification  prepared" in plugged(text, "data", "list", *data).stdout
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.parametrize("arguments", ["run tiny.toml --list", "jobs plan tiny.toml --system generic-cpu"])
def test_a_login_node_checks_an_own_model_without_torch_and_mpi(tmp_path, tiny_suite, arguments):
    (tmp_path / "own.py").write_text(MODEL.format(width=4, returned="Network()"))
    without_torch(tmp_path, f"{arguments} --plugin own.py --set model=plain")
