"""A round of a plug-in is watched: what no checkpoint holds, or what chance decides, ends the run."""

import numpy as np
import pytest
import torch

from fedmpi.programs.alike import alike, copied
from fedmpi.programs.hook_calls import HookCalls
from tests.mpi.launcher import find
from tests.refusals import table
from tests.started import sets

MOMENTUM = """
import numpy as np

from fedmpi.algorithms.base import Algorithm


class Momentum(Algorithm):
    name = "NAME"
    central = True
    moved = None

    {more}

    def update(self, model, mean, num_clients):
        {body}
        return (model + moved).astype(np.float32)
"""
DECLARED = "def server_memory(self, trained, num_clients): return {'moved': np.zeros(trained)}"
KEPT = "moved = self.server['moved'] = 0.9 * self.server['moved'] + mean"


@pytest.mark.parametrize("body", [KEPT, KEPT.replace("+ mean", "+ mean[:1]")])  # one number is added to all
def test_what_a_checkpoint_holds_is_fine(run, body):
    assert run(MOMENTUM.format(body=body, more=DECLARED)).record.rounds_completed == 3


UNDECLARED = """
moved = self.moved = mean if self.moved is None else 0.9 * self.moved + mean
    -> changed self.moved, which no checkpoint holds: declare it in server_memory(), and keep it in
moved = mean * np.random.rand() -> drew from a global generator: take random numbers from fedmpi.seeds
"""
OTHER = """
moved = self.server['moved'] = mean[:1]
    -> declares moved as float64 [24960], and self.server has it as float64 [1]
moved = self.server['other'] = mean -> declares moved, and self.server has moved, other
moved = mean; self.server = 5 -> declares moved, and self.server is 5: it stays a dict of arrays
moved = mean; self.server = {'moved': object()} -> declares arrays, and self.server holds something else
"""


@pytest.mark.parametrize(
    ("more", "body", "hook", "words"),
    [
        *(("pass", body, "update", words) for body, words in table(UNDECLARED)),
        *((DECLARED, body, "server_memory", words) for body, words in table(OTHER)),
    ],
)
def test_what_no_checkpoint_holds_or_is_not_as_declared_ends_the_run(run, more, body, hook, words):
    done = run(MOMENTUM.format(body=body, more=more))
    assert done.returncode == 1
    assert f"hook {hook} in" in done.line and words in done.line
    assert hook == "update" or "Traceback" not in done.stderr


SERVER = """
import itertools

import numpy as np

from fedmpi.algorithms.base import Algorithm

TIMES = itertools.count()


class Dots(Algorithm):
    name = "NAME"
    decides = {{"moves"}}
    asks = {{"rows"}}
    seen = 0

    def warm_up(self):
        self.kernel = lambda rows: rows.mean(axis=0, dtype=np.float64)

    def server_memory(self, trained, num_clients):
        return {{"energy": np.zeros(1)}}

    def decide(self, server):
        self.server["energy"][0] += server.reports["delta_norm"] @ server.reports["gradient_norm"]
        clients, factor = server.participants, 1.0
        {body}
        rows = yield server.rows(clients)
        energy = self.server["energy"][0]
        self.server["energy"][0] = energy / 2
        server.move(server.participants, factor * self.kernel(rows) * (1 + 0 * energy))
"""


def test_what_a_round_or_the_warm_up_makes_is_fine_on_several_ranks(tmp_path):
    (tmp_path / "dots.py").write_text(SERVER.format(body="pass").replace("NAME", "dots"))
    settings = ("algorithm=dots", "rounds=3", "dataset.synthetic.domains=1", "partition=iid")
    changes = sets(*settings, "partition.clients=20")
    command = ("run", "synthetic/quick", "--case", "0", "--plugin", "dots.py", *changes, "--out", "runs")
    code, output = find("mpich").run(3, "-m", "fedmpi", *command, cwd=tmp_path, timeout=300)
    assert code == 0, output


TWICE = """
factor += next(TIMES) -> does otherwise when it is called again
clients = clients[: 1 + next(TIMES)] -> does otherwise when it is called again
if next(TIMES) % 2: yield server.rows(clients) -> does otherwise when it is called again
factor += np.random.rand() -> drew from a global generator: take random numbers from fedmpi.seeds
self.seen += 1 -> changed self.seen, which no checkpoint holds: declare it in server_memory()
self.server['energy'] = np.zeros(2) -> declares energy as float64 [1], and self.server has it as
"""


@pytest.mark.parametrize(("body", "words"), table(TWICE))
def test_a_servers_program_that_does_otherwise_when_repeated_ends_the_run(run, body, words):
    done = run(SERVER.format(body=body))
    assert done.returncode == 1
    assert "hook decide in" in done.line or "hook server_memory in" in done.line
    assert words in done.line


def test_fedmpis_own_algorithms_pass(fedmpi, tmp_path, monkeypatch):
    """In a second round of each, with a state or a memory of the round."""
    watched, talk = set(), HookCalls.talk

    def noted(self, hook, *arguments, **more):
        if self.watching:
            watched.add(f"{type(self.algorithm).__name__}.{hook}")
        return talk(self, hook, *arguments, **more)

    monkeypatch.setattr(HookCalls, "is_plugin", property(lambda self: True))
    monkeypatch.setattr(HookCalls, "talk", noted)
    (tmp_path / "suite.toml").write_text("""
        [case]
        dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 60 } }
        partition = { name = "dirichlet-quantity", clients = 4, alpha = 2.0 }
        rounds = 3
        [matrix]
        algorithm = [
            "fedadam", "feddyn", "gcfl", "gcfl-plus", "fedcch", "q-fedavg", "median", "scaffold", "fedproto", "apfl",
            "ditto"
        ]
        [[where]]
        when = { algorithm = "gcfl" }
        set = { algorithm = { warmup = 0, smallest = 1, eps1 = 1e9, eps2 = 0.0 } }
        [[where]]
        when = { algorithm = "scaffold" }
        set = { optimizer = "sgd" }
    """)
    done = fedmpi("run", tmp_path / "suite.toml", "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert watched >= {
        "FedAdam.update", "Gcfl.decide", "GcflPlus.decide", "FedCch.decide", "QFedAvg.decide", "Median.decide",
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
