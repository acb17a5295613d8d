"""What becomes of a sweep's cases when the sweep itself is killed."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from fedmpi.cli.workers import Worker, _end_with_parent
from fedmpi.store.identical import differences
from fedmpi.store.lock import state
from fedmpi.store.reader import load_run


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_case_of_a_killed_sweep_finishes_its_round_and_ends(fedmpi_process, tiny_suite, tmp_path):
    options = ["--set", "rounds=100000", "--set", "algorithm=fedavg", "--set", "checkpoint_seconds=0.1"]
    sweep = fedmpi_process("sweep", tiny_suite, "--out", "runs", *options)
    folder = tmp_path / "runs" / "fedavg-rounds=100000-checkpoint_seconds=0.1"
    wait_for((folder / "checkpoints/manifest").exists)
    sweep.kill()
    sweep.communicate()
    wait_for(lambda: state(folder) == "free")
    run = load_run(folder)
    assert run.status == "interrupted" and run.reason.startswith("stopped by a signal after round")


@pytest.mark.parametrize(("parent", "code"), [(os.getpid, 0), (lambda: 1, 75)])
def test_a_case_whose_sweep_is_gone_already_does_not_begin(parent, code):
    process = subprocess.Popen([sys.executable, "-c", ""], preexec_fn=partial(_end_with_parent, parent()))
    assert process.wait() == code


def test_a_case_that_starts_while_the_sweep_is_stopped_is_asked_too(
    fedmpi, tiny_suite, tmp_path, monkeypatch
):
    start = Worker.__init__

    def stopped_within(self, *arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        start(self, *arguments)

    monkeypatch.setattr(Worker, "__init__", stopped_within)
    done = fedmpi("sweep", tiny_suite, "--out", "runs", "--set", "rounds=100000")
    assert done.returncode == 75
    assert "3 cases are left" in done.stdout


SUITE = """
name = "one-worker"
[case]
dataset = { name = "synthetic", synthetic = { domains = 2, graphs = 40 } }
partition = "per-dataset"
rounds = 3
[matrix]
case = [
    { label = "fedavg", algorithm = "fedavg" },
    { label = "wild", optimizer = { lr = 1e30 } },
    { label = "many", partition = { name = "iid", clients = 2000 }, dataset = { synthetic = { domains = 1 } } },
    { label = "dead", algorithm = "leaves" },
    { label = "gcfl-plus", algorithm = { name = "gcfl-plus", eps1 = 10.0, eps2 = 0.0, warmup = 1, length = 2 } },
    { label = "fedprox", algorithm = "fedprox", subnormals = "flushed" },
]
"""

LEAVES = """
import os
from fedmpi.algorithms.base import Algorithm

class Leaves(Algorithm):
    "FedAvg that ends its process."
    name = "leaves"

    def update(self, round, model, mean):
        os._exit(7)
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_worker_runs_cases_as_single_runs_do_and_loses_only_the_one_that_ends_it(fedmpi, tmp_path, ranks):
    (tmp_path / "suite.toml").write_text(SUITE)
    (tmp_path / "leaves.py").write_text(LEAVES)
    given = ("suite.toml", "--plugin", "leaves.py")
    done = fedmpi("sweep", *given, "--out", "runs", "--ranks", ranks)
    assert done.returncode == 1, done.stdout + done.stderr
    ends = [line.split(" after ")[0] for line in done.stdout.splitlines() if line.startswith("[")]
    assert ends[0] == "[1/6] fedavg: complete"
    assert ends[1:3] == ["[1/6] wild: diverged", "[1/6] many: bad input"]
    assert ends[3].startswith("[1/6] dead: ")
    assert ends[4:] == ["[2/6] gcfl-plus: complete", "[3/6] fedprox: complete"]
    assert "3 cases are left" in done.stdout
    assert "use fewer clients" in (tmp_path / "runs/many/log.txt").read_text()
    processes = [attempt_of(tmp_path / "runs" / case) for case in ("fedavg", "gcfl-plus", "fedprox")]
    assert processes[0] != processes[1] == processes[2]
    if ranks == 1:
        return
    for case in ("gcfl-plus", "fedprox"):
        assert fedmpi("run", *given, "--case", case, "--out", "alone").returncode == 0
        assert differences(tmp_path / "alone" / case, tmp_path / "runs" / case) == []


def attempt_of(folder):
    """Return the process of rank 0 of a run's one attempt."""
    (attempt,) = load_run(folder).attempts
    return attempt.provenance["mpi"]["ranks"][0]["pid"]
