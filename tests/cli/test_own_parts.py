"""Runs with models, partitions and datasets that a file of the user's defines."""

import gc
import subprocess
import sys

import pytest

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
def own(fedmpi, tiny_suite, tmp_path):
    """Return a function that writes a plug-in and runs a command with it on a suite of one case."""

    def forget():
        sys.modules.pop("fedmpi_plugin_own", None)
        gc.collect()

    def run(text, *settings, command="run"):
        forget()
        (tmp_path / "own.py").write_text(text)
        options = [part for setting in ("rounds=2", *settings) for part in ("--set", setting)]
        return fedmpi(command, tiny_suite, "--case", "0", "--plugin", "own.py", *options, "--out", "runs")

    yield run
    forget()


def test_a_run_of_an_edited_model_is_refused(own):
    text = MODEL.format(width=4, returned="Network()")
    first = own(text, "model=plain")
    assert first.returncode == 0, first.stderr
    assert "model FLOPs are counted by torch on one batch: plain brings no formula" in first.stdout
    again = own(text + "# edited\n", "model=plain")
    assert again.returncode == 2
    assert "was made with another version of own.py (sha256 " in again.stderr
    assert again.stderr.count("\n") == 1


WITHOUT_MPI = ("run", "tiny.toml", "--case", "0", "--plugin", "own.py", "--set", "model=plain")


def test_a_tensor_of_another_shape_on_another_client_is_named_before_mpi_starts(tmp_path, tiny_suite, fedmpi):
    (tmp_path / "own.py").write_text(MODEL.format(width="shape.width", returned="Network()"))
    (tmp_path / "mpi4py.py").write_text("raise SystemExit('MPI was started')")
    done = subprocess.run(
        [sys.executable, "-m", "fedmpi", *WITHOUT_MPI], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == (
        "fedmpi: algorithm fedavg: hook shares lets conv.weight leave, which is 8 x 4 for client synthetic-0 and "
        "8 x 5 for client synthetic-1: what is shared must not depend on a client's features and classes\n"
    )


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        (
            MODEL.format(width=4, returned="1 / 0"),
            ("model=plain",),
            "model plain: own.py raised ZeroDivisionError: division by zero",
        ),
        (
            MODEL.format(width=4, returned="torch.nn.ReLU()"),
            ("model=plain",),
            "model plain: its network must be a torch.nn.Module with parameters",
        ),
        (
            MODEL.format(width=4, returned="Network()").replace("batch.x[", "batch.y["),
            ("model=plain",),
            "model plain: own.py raised AttributeError: 'Batch' object has no attribute 'y'",
        ),
        (
            MODEL.format(width=4, returned="Network()").replace(
                "super().__init__()", "super().__init__(); self.scale = torch.nn.Parameter(torch.randn(3))"
            ),
            ("model=plain",),
            "model plain: scale is drawn where its module is made, not from the seed: draw it in a method "
            "reset_parameters() of that module",
        ),
        (
            PARTITION.format(body="return 1 / 0"),
            ("dataset.synthetic.domains=1", "partition=odd"),
            "partition odd: own.py raised ZeroDivisionError: division by zero",
        ),
        (
            PARTITION.format(body="return [[0, 40]]"),
            ("dataset.synthetic.domains=1", "partition=odd"),
            "partition 'odd' deals what are no graph numbers from 0 to 39",
        ),
        (
            PARTITION.format(body="return []"),
            ("dataset.synthetic.domains=1", "partition=odd"),
            "partition 'odd' deals to no client",
        ),
        (
            PARTITION.format(body="return [[*range(20)] * 2, [*range(20, 40)]]"),
            ("dataset.synthetic.domains=1", "partition=odd"),
            "partition 'odd' deals graph 0 twice to client-00: it may be trained on and judged by; deal each once, or "
            "define overlaps() that returns True",
        ),
        (
            PARTITION.format(body="return [[*range(20)], [*range(19, 40)]]"),
            ("dataset.synthetic.domains=1", "partition=odd"),
            "partition 'odd' deals graph 19 to client-00 and to client-01: it may be trained on and judged by; deal "
            "each once, or define overlaps() that returns True",
        ),
        (
            FAMILY.format(count="1 / 0"),
            ("dataset=dots",),
            "dataset family dots: own.py raised ZeroDivisionError: division by zero",
        ),
        (
            FAMILY.format(count="40").replace('"odd"))', '"odd"), places=np.arange(count))'),
            ("dataset=dots",),
            "dataset family dots: its `examples` say graphs, `places` of dots are those of nodes: "
            "correct one of them",
        ),
    ],
    ids=[
        *("network", "no network", "forward", "unseeded", "deal", "numbers", "nobody", "twice", "to two"),
        *("read", "examples"),
    ],
)
def test_what_a_plugin_does_wrong_is_one_line_and_no_run(own, tmp_path, text, settings, words):
    done = own(text, *settings)
    assert done.returncode == 2
    assert done.stderr == f"fedmpi: {words}\n"
    assert not list(tmp_path.glob("runs/*/run.h5"))


def test_a_partition_that_says_so_deals_a_graph_to_two_clients(own, tmp_path):
    text = PARTITION.format(body="return [[*range(20)], [*range(10, 40)]]")
    done = own(text + "    def overlaps(self): return True\n", "dataset.synthetic.domains=1", "partition=odd")
    assert done.returncode == 0, done.stderr


def test_an_edited_family_is_prepared_anew(fedmpi, tmp_path):
    for count in (60, 70):
        (tmp_path / "dots.py").write_text(FAMILY.format(count=count))
        sys.modules.pop("fedmpi_plugin_dots", None)
        gc.collect()
        data = ("--data", "cache", "--plugin", "dots.py")
        assert fedmpi("data", "fetch", "dots", *data).returncode == 0
        assert f"dots: ok, {count} graphs" in fedmpi("data", "verify", "dots", *data).stdout
        assert "dots  classification  prepared" in fedmpi("data", "list", *data).stdout
    sys.modules.pop("fedmpi_plugin_dots", None)
    gc.collect()
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.parametrize(
    "arguments",
    [("run", "tiny.toml", "--list"), ("jobs", "plan", "tiny.toml", "--system", "generic-cpu")],
    ids=" ".join,
)
def test_a_login_node_checks_an_own_model_without_torch_and_mpi(tmp_path, tiny_suite, arguments):
    (tmp_path / "own.py").write_text(MODEL.format(width=4, returned="Network()"))
    done = without_torch([*arguments, "--plugin", "own.py", "--set", "model=plain"], tmp_path)
    assert done.returncode == 0, done.stderr
