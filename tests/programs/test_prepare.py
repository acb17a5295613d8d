"""Clients' programs before round 1: what exchanges bring, and what is refused in one line."""

import gc
import sys

import numpy as np
import pytest

from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.mpi.launcher import find
from tests.refusals import table
from tests.started import sets

PLUGIN = """
import numpy as np

from fedmpi.algorithms.base import Algorithm


class Meet(Algorithm):
    name = "meet"

    def prepare(self, client):
        {body}
"""

WHOLE = """
        counts = yield client.count(client.id + 1)
        assert counts.tolist() == [1, 2, 3]
        shown = yield client.show(np.full((client.id + 1, 2), client.id, np.float32))
        assert [rows.tolist() for rows in shown] == [[[n, n]] * (n + 1) for n in range(3)]
        own = yield client.answer([rows + 10 * client.id for rows in shown])
        others = [n for n in range(3) if n != client.id]
        assert (own == sum(client.id + 10 * n for n in others)).all()
        shown[0] *= 0
        client.add_nodes(np.zeros(client.id, np.int64), np.zeros((client.id, client.graphs.features.shape[1]), "f4"))
        client.work(100 * client.id)
"""

SETTINGS = (
    "dataset=synthetic-nodes", "partition=louvain", "partition.clients=3", "partition.parts=60/20/20", "share=all",
    "model=sage", "algorithm=meet", "rounds=2",
)  # fmt: skip


@pytest.fixture
def command(tmp_path):
    """Return a function that writes the plug-in and returns the arguments that run it."""

    def write(body):
        (tmp_path / "meet.py").write_text(PLUGIN.format(body=body.strip()))
        return ("run", "synthetic/quick", "--case", "0", "--plugin", "meet.py", *sets(*SETTINGS), "--out")

    yield write
    sys.modules.pop("fedmpi_plugin_meet", None)
    gc.collect()


@pytest.mark.long
def test_exchanges_bring_the_same_on_any_ranks(command, fedmpi, tmp_path):
    arguments = command(WHOLE)
    done = fedmpi(*arguments, "one")
    assert done.returncode == 0, done.stderr
    code, output = find("mpich").run(3, "-m", "fedmpi", *arguments, "three", cwd=tmp_path, timeout=300)
    assert code == 0, output
    (one,), (three,) = ((tmp_path / name).iterdir() for name in ("one", "three"))
    assert differences(one, three) == []
    run = load_run(one)
    assert run.results["generated_nodes"].tolist() == [[0, 1, 2]] * 2
    up, down, flops = (run.results[name] for name in ("client_bytes_up", "client_bytes_down", "model_flops"))
    shown, answered = 8 * np.array([1, 2, 3]), 8 * np.array([5, 4, 3])  # rows of two float32
    assert (up[0] - up[1]).tolist() == (8 + shown + answered).tolist()
    assert (down[0] - down[1]).tolist() == (24 + answered + shown).tolist()
    assert (flops[0] - flops[1]).tolist() == [0, 100, 200]


MISTAKES = """
yield client.show(np.zeros((1, 2), 'f4')) -> shows rows: first `yield client.count(n)`
yield client.count(2) | yield client.show(np.zeros((1, 2), 'f4'))
    -> returned float32 [1, 2]: it must be float32 [2, 2]
yield client.count(-1) -> it must be a whole number, 0 or more
yield client.answer([]) -> answers: it must be a list of rows for each client
yield 3 -> yielded 3: yield what a verb returns
client.count(2) | yield client.show(np.zeros((2, 2), 'f4')) -> shows rows: first `yield
yield client.count(2**63) -> it must be a whole number, 0 or more
yield client.count(1) | yield client.show(np.zeros((1, 0), 'f4'))
    -> returned float32 [1, 0]: it must be float32 [1, 1]
while True: yield client.count(1) -> yielded more than 10,000 times: it must come to an end
self.seen = client.id -> changed self.seen, which no checkpoint holds
np.random.rand() -> drew from a global generator
for _ in range(2): client.add_nodes(np.zeros(0, int), client.graphs.features[:0])
    -> adds nodes a second time: add all at once
if client.id: yield client.count(1)
    -> takes other exchanges, or rows of other widths, on some clients than on others
client.add_nodes(np.array([10**6]), np.zeros((1, 4), 'f4')) -> named node 1000000: there is none
"""
"""Bodies of `prepare`, in which | begins a line."""


@pytest.mark.parametrize(("body", "words"), table(MISTAKES))
def test_a_mistake_is_one_line(command, fedmpi, body, words):
    done = fedmpi(*command(body.replace(" | ", "\n        ")), "runs")
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("fedmpi: ")]
    assert done.returncode == 1
    assert "algorithm meet: hook prepare in" in line and words in line
