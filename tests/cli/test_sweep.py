"""What becomes of a sweep's cases when the sweep itself is killed."""

import os
import signal
import subprocess
import sys
import tempfile
from functools import partial

import pytest

from fedmpi.cli.workers import Worker, _end_with_parent
from fedmpi.store.identical import differences
from fedmpi.store.lock import state
from fedmpi.store.reader import load_run
from tests.cli.refusals import refused
from tests.cli.waiting import wait_for
from tests.mpi.launcher import find


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


def test_a_sweep_that_is_stopped_has_cases_left_though_others_diverged(fedmpi_process, tiny_suite, tmp_path):
    axis = 'end = [{ label = "wild", optimizer = { lr = 1e30 } }, { label = "endless", rounds = 100000 }]'
    text = tiny_suite.read_text().replace("[matrix]", f"[matrix]\n{axis}")
    (tmp_path / "ends.toml").write_text(text)
    options = ("--set", "algorithm=fedavg", "--set", "checkpoint_seconds=0.1")
    sweep = fedmpi_process("sweep", "ends.toml", "--out", "runs", *options)
    wait_for(lambda: any((tmp_path / "runs").glob("endless*/checkpoints/manifest")))
    sweep.send_signal(signal.SIGINT)
    said = sweep.communicate()[0]
    assert "diverged" in said and sweep.returncode == 75


def test_the_next_start_removes_what_a_killed_sweep_left(
    fedmpi, fedmpi_process, tiny_suite, tmp_path, monkeypatch
):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(place))
    (place / "fedmpi-sweep-own").mkdir()  # without a lock: nobody knows whose
    sweep = fedmpi_process("sweep", tiny_suite, "--out", "runs", "--set", "rounds=100000")
    wait_for(lambda: len(list(place.glob("fedmpi-sweep-*/worker-0.answers"))) == 1)
    sweep.kill()
    sweep.communicate()
    assert len(list(place.glob("fedmpi-sweep-*"))) == 2
    fedmpi("sweep", tiny_suite, "--out", "others", code=0)
    assert [path.name for path in place.glob("fedmpi-sweep-*")] == ["fedmpi-sweep-own"]


@pytest.mark.parametrize(("parent", "code"), [(os.getpid, 0), (lambda: 1, 75)])
def test_a_case_whose_sweep_is_gone_already_does_not_begin(parent, code):
    process = subprocess.Popen([sys.executable, "-c", ""], preexec_fn=partial(_end_with_parent, parent()))
    assert process.wait() == code


def test_a_case_that_starts_as_the_sweep_stops_is_asked_too(fedmpi, tiny_suite, tmp_path, monkeypatch):
    start = Worker.__init__

    def stopped_within(self, *arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        start(self, *arguments)

    monkeypatch.setattr(Worker, "__init__", stopped_within)
    done = fedmpi("sweep", tiny_suite, "--out", "runs", "--set", "rounds=100000", code=75)
    assert "3 cases are left" in done.stdout


def test_a_sweep_beside_a_checkout_takes_the_package_and_not_the_folder(fedmpi, tiny_suite, tmp_path):
    (tmp_path / "fedmpi").mkdir()  # as beside a clone
    (tmp_path / "fedmpi/__init__.py").write_text("raise RuntimeError")
    done = fedmpi("sweep", tiny_suite, "--out", "runs", "--set", "algorithm=fedavg", code=0)
    assert "[1/1] fedavg: complete" in done.stdout


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


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_worker_runs_cases_as_single_runs_do_and_loses_only_the_one_that_ends_it(fedmpi, tmp_path, ranks):
    (tmp_path / "suite.toml").write_text(SUITE)
    (tmp_path / "leaves.py").write_text(LEAVES)
    given = ("suite.toml", "--plugin", "leaves.py")
    done = fedmpi("sweep", *given, "--out", "runs", "--ranks", ranks, code=1)
    ends = [line.split(" after ")[0] for line in done.stdout.splitlines() if line.startswith("[")]
    assert ends[0] == "[1/6] fedavg: complete"
    assert ends[1:3] == ["[1/6] wild: diverged", "[1/6] many: bad input"]
    assert ends[3].startswith("[1/6] dead: ")
    assert ends[4:] == ["[2/6] gcfl-plus: complete", "[3/6] fedprox: complete"]
    assert "1 case diverged\n2 cases are left" in done.stdout
    assert "use fewer clients" in done.stdout
    assert "use fewer clients" in (tmp_path / "runs/many/log.txt").read_text()
    processes = [attempt_of(tmp_path / "runs" / case) for case in ("fedavg", "gcfl-plus", "fedprox")]
    assert processes[0] != processes[1] == processes[2]
    if ranks == 1:
        return
    for case in ("gcfl-plus", "fedprox"):
        fedmpi("run", *given, "--case", case, "--out", "alone", code=0)
        assert differences(tmp_path / "alone" / case, tmp_path / "runs" / case) == []


def attempt_of(folder):
    """Return the process of rank 0 of a run's one attempt."""
    (attempt,) = load_run(folder).attempts
    return attempt.provenance["mpi"]["ranks"][0]["pid"]


@pytest.mark.long
def test_shares_divide_a_suite_and_a_list_of_its_cases(fedmpi, tiny_suite, tmp_path):
    done = fedmpi("sweep", tiny_suite, "--out", "runs", "--share", "1/2")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "1 case, 0 complete, 1 to run")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["fedprox"]
    (tmp_path / "list").write_text("self-train\nfedprox\n\nfedavg\nself-train\n")  # each case once
    done = fedmpi("sweep", tiny_suite, "--out", "runs", "--cases", "list", "--share", "0/2")
    assert done.stdout.splitlines()[0] == "2 cases, 0 complete, 2 to run"
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["fedavg", "fedprox", "self-train"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--share", "2/2"), "--share 2/2: give T/N with T from 0 to N-1, such as 0/4"),
        (("--share", "half"), "--share half: give T/N with T from 0 to N-1, such as 0/4"),
        (("--cases", "none"), "--cases none: No such file or directory"),
        (("--cases", "list"), '--cases list: fedavgg is no case of the suite; did you mean "fedavg"?'),
        (("--launch", "nothing-of-this-name fedmpi"), "nothing-of-this-name fedmpi: no such program"),
        (("--launch", "srun 'fedmpi"), "--launch srun 'fedmpi: No closing quotation"),
    ],
)
def test_a_share_or_launcher_that_cannot_be_is_said_in_one_line(fedmpi, tiny_suite, tmp_path, given, said):
    (tmp_path / "list").write_text("fedavgg\n")
    refused(fedmpi("sweep", tiny_suite, "--out", "runs", *given), said)
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def launcher(tmp_path):
    """Return a function that makes a launcher of lines of bash; ``$n`` is how often it was called before."""

    def make(body):
        path = tmp_path / "launcher"
        count = tmp_path / "count"
        path.write_text(
            f"#!/usr/bin/env bash\nn=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) >{count}\n"
            f'{body}\nexec {sys.executable} -m fedmpi "$@"\n'
        )
        path.chmod(0o755)
        return path

    return make


def test_a_case_whose_launcher_fails_starts_twice_at_most(fedmpi, tiny_suite, tmp_path, launcher):
    """The launcher fails for fedavg twice and for fedprox once."""
    done = fedmpi("sweep", tiny_suite, "--out", "runs", "--launch", launcher("[ $n -lt 3 ] && exit 134"))
    assert done.returncode == 1
    for case in ("fedavg", "fedprox"):
        assert f"{case}: code 134 before an event was written; it is started once more" in done.stdout
    assert "[0/3] fedavg: ended with code 134" in done.stdout
    assert "[1/3] fedprox: complete" in done.stdout
    assert "[2/3] self-train: complete" in done.stdout
    assert (tmp_path / "count").read_text() == "4\n"
    assert not [path for path in (tmp_path / "runs").iterdir() if path.name.startswith(".")]


def test_ranks_that_never_meet_start_once_more(fedmpi, tiny_suite, tmp_path, launcher, monkeypatch):
    monkeypatch.setenv("FEDMPI_MPI_START_S", "3")
    mpiexec = f"{find('mpich').mpiexec} -n 1 {sys.executable} -m fedmpi"
    alone = f'[ $n = 0 ] && exec {mpiexec} "$@" : -n 1 sleep 600'
    done = fedmpi("sweep", tiny_suite, "--share", "0/3", "--out", "runs", "--launch", launcher(alone), code=0)
    late = "MPI had not started in time (FEDMPI_MPI_START_S)"
    ended = "code 15 before an event was written"  # MPICH's launcher sometimes reports this in its place
    assert any(f"fedavg: {reason}; it is started once more" in done.stdout for reason in (late, ended))


def test_a_limit_that_is_no_number_is_refused(fedmpi, tiny_suite, monkeypatch):
    monkeypatch.setenv("FEDMPI_MPI_START_S", "soon")
    words = 'FEDMPI_MPI_START_S is "soon"; give whole seconds, 0 to wait for ever'
    refused(fedmpi("run", tiny_suite), words)


def test_ranks_that_were_asked_to_stop_end_a_launched_sweep(fedmpi, tiny_suite, tmp_path, launcher):
    asks = f"(until [ -e {tmp_path}/runs/fedavg/checkpoints/manifest ]; do sleep 0.1; done; kill -TERM $$) &"
    suite = tmp_path / "long.toml"
    rounds = "rounds = 100000\ncheckpoint_seconds = 0.1"
    suite.write_text(tiny_suite.read_text().replace("rounds = 4", rounds))
    fedmpi("sweep", suite, "--out", "runs", "--launch", launcher(asks), code=75)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["fedavg"]
    assert load_run(tmp_path / "runs" / "fedavg").status == "interrupted"
