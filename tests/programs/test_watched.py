"""A round of a plug-in is watched: what no checkpoint holds, or what chance decides, ends the run."""

import gc
import itertools
import sys

import numpy as np
import pytest
import torch

from fedmpi.programs.alike import alike, copied
from fedmpi.programs.hook_calls import HookCalls
from fedmpi.store.reader import load_run
from tests.mpi.launcher import find

PLUGIN = """
import numpy as np

from fedmpi.algorithms.base import Algorithm


class Momentum(Algorithm):
    name = "{name}"
    central = True
    moved = None

    def update(self, model, mean, num_clients):
        {body}
        return (model + moved).astype(np.float32)
"""
NUMBERS = itertools.count()
STEP = "moved = self.moved = mean if self.moved is None else 0.9 * self.moved + mean"
KEPT = "moved = self.server['moved'] = 0.9 * self.server['moved'] + mean"
DECLARED = """
    def server_memory(self, trained, num_clients):
        return {"moved": np.zeros(trained)}
"""


@pytest.fixture
def run(fedmpi, tmp_path):
    """Return a function that runs a plug-in for three rounds, and what came of it; each has its own name."""

    def start(body, more=""):
        name = f"momentum{next(NUMBERS)}"
        (tmp_path / f"{name}.py").write_text(PLUGIN.format(body=body, name=name) + more)
        settings = ("--set", f"algorithm={name}", "--set", "rounds=3", "--out", tmp_path / "runs")
        return fedmpi("run", "synthetic/quick", "--plugin", tmp_path / f"{name}.py", *settings)

    yield start
    for name in [name for name in sys.modules if name.startswith("fedmpi_plugin_momentum")]:
        del sys.modules[name]
    gc.collect()


def test_what_no_checkpoint_holds_ends_the_run(run):
    done = run(STEP)
    assert done.returncode == 1
    line = done.stderr.strip().splitlines()[-1]
    assert "hook update in" in line
    assert (
        "changed self.moved, which no checkpoint holds: declare it in server_memory(), and keep it in" in line
    )


def test_what_is_not_as_declared_ends_the_run(run):
    done = run(KEPT.replace("+ mean", "+ mean[:1]"), DECLARED)
    assert done.returncode == 0  # one number is added to all
    done = run("moved = self.server['moved'] = mean[:1]", DECLARED)
    assert done.returncode == 1 and "hook server_memory in" in done.stderr
    assert "declares moved as float64 [24960], and self.server has it as float64 [1]" in done.stderr
    done = run("moved = self.server['other'] = mean", DECLARED)
    assert "declares moved, and self.server has moved, other" in done.stderr


def test_what_a_checkpoint_holds_is_fine(run, tmp_path):
    done = run(KEPT, DECLARED)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert load_run(folder).rounds_completed == 3


def test_random_numbers_of_a_global_generator_end_the_run(run):
    done = run("moved = mean * np.random.rand()")
    assert done.returncode == 1
    assert "drew from a global generator: take random numbers from fedmpi.seeds" in done.stderr


ROWS = """
import numpy as np

from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.capabilities import RowAggregate, Splits


class {name}(RowAggregate, Splits, Algorithm):
    name = "{name}"

    def warm_up(self):
        self.kernel = lambda rows, weights: np.average(rows.astype(np.float64), axis=0, weights=weights)

    def server_memory(self, trained, num_clients):
        return {{"energy": np.zeros(1)}}

    def observe(self, reports):
        self.server["energy"][0] = reports["delta_norm"] @ reports["gradient_norm"]

    def split_candidates(self, round, group, reports):
        return [] if self.server["energy"][0] == reports["delta_norm"] @ reports["gradient_norm"] else [0]

    def should_split(self, mean_norm):
        return False

    def split(self, members, rows):
        raise NotImplementedError

    def aggregate(self, rows, weights):
        return self.kernel(rows, weights) * (1 + 0 * self.server["energy"])
"""


def test_what_a_round_or_the_warm_up_makes_is_fine_on_several_ranks(tmp_path):
    """Columns of the reports are strided: a product of contiguous copies would be rounded otherwise."""
    (tmp_path / "dots.py").write_text(ROWS.format(name="dots"))
    settings = ("algorithm=dots", "rounds=3", "dataset.synthetic.domains=1", "partition=iid")
    changes = [part for each in (*settings, "partition.clients=20") for part in ("--set", each)]
    command = ("run", "synthetic/quick", "--case", "0", "--plugin", "dots.py", *changes, "--out", "runs")
    code, output = find("mpich").run(3, "-m", "fedmpi", *command, cwd=tmp_path, timeout=300)
    assert code == 0, output


def test_fedmpis_own_algorithms_pass(fedmpi, tmp_path, monkeypatch):
    """In a second round of each, with a state or a memory of the round."""
    asked, watched = set(), HookCalls._watched

    def noted(self, hook, arguments):
        asked.add(f"{type(self.algorithm).__name__}.{hook}")
        return watched(self, hook, arguments)

    monkeypatch.setattr(HookCalls, "is_own", property(lambda self: False))
    monkeypatch.setattr(HookCalls, "_watched", noted)
    (tmp_path / "suite.toml").write_text("""
        [case]
        dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 60 } }
        partition = { name = "dirichlet-quantity", clients = 4, alpha = 2.0 }
        rounds = 3
        [matrix]
        algorithm = [
            "fedadam", "feddyn", "gcfl-plus", "fedcch", "q-fedavg", "median", "scaffold", "fedproto", "apfl", "ditto"
        ]
        [[where]]
        when = { algorithm = "scaffold" }
        set = { optimizer = "sgd" }
    """)
    done = fedmpi("run", tmp_path / "suite.toml", "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert asked >= {
        "FedAdam.update", "GcflPlus.observe", "FedCch.decide", "QFedAvg.decide", "Median.aggregate",
        "Scaffold.change", "Scaffold.trained", "FedProto.predict", "Apfl.train", "Ditto.evaluated",
    }  # fmt: skip


def test_alike_is_equal_to_the_bit():
    assert alike({"a": [np.float32([1, np.nan])]}, {"a": [np.float32([1, np.nan])]})
    assert not alike(np.zeros(2), -np.zeros(2))
    assert not alike(np.zeros(2), np.zeros(2, np.float32))
    assert not alike((torch.ones(1),), (torch.zeros(1),))
    assert not alike(None, np.zeros(1))
    assert alike(float("nan"), float("nan"))
    assert alike(object(), object())
    assert not alike(0.5, np.array(0.7)) and not alike(1j, 2j)
    assert alike(torch.ones(1, dtype=torch.bfloat16), torch.ones(1, dtype=torch.bfloat16))


def test_copies_have_the_same_steps_in_memory():
    table = np.arange(12.0).reshape(4, 3)
    column = copied({"a": (table[:, 1],)})["a"][0]
    assert column.strides == table[:, 1].strides and column.tolist() == table[:, 1].tolist()
    assert column.base is not table
