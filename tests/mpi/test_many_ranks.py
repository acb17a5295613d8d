"""Ranks that outnumber their cores by far: results, endings and memory are those of few ranks or better."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.cli.own_graphs import write_graphs
from tests.mpi.launcher import end, find

SUITE = """
name = "many"
[case]
algorithm = "fedavg"
dataset = "./own/TINY"
partition = {{ name = "iid", clients = {clients} }}
model = {{ hidden = 16 }}
rounds = {rounds}
"""
MANY = 4 * len(os.sched_getaffinity(0)) + 2
"""Ranks that are many for the cores here."""
NEEDED_BYTES = 6 << 30
"""Twice what 64 ranks take."""


@pytest.fixture
def many(tmp_path, monkeypatch):
    """Return a function that writes a suite on small graphs and returns the words that run it."""
    monkeypatch.setenv("FEDMPI_DATA", str(tmp_path / "data"))

    def written(clients, rounds=3):
        write_graphs(tmp_path, "TINY", [number % 2 for number in range(10 * clients)])
        (tmp_path / "many.toml").write_text(SUITE.format(clients=clients, rounds=rounds))
        return ["-m", "fedmpi", "run", "many.toml", "--out"]

    return written


def ran(mpi, ranks, words, folder):
    """Run to the end; return the folder of the case."""
    code, output = mpi.run(ranks, *words, folder, cwd=folder.parent, timeout=85)
    assert code == 0, output
    return case_of(folder)


def case_of(folder):
    (case,) = (path for path in folder.iterdir() if path.is_dir())
    return case


def ranks_of(case):
    """Return what the latest attempt recorded of its ranks."""
    return load_run(case).attempts[-1].provenance["mpi"]["ranks"]


def median_mb(case, kind):
    return np.median([rank["memory_bytes"][kind] for rank in ranks_of(case)]) / 1e6


def rounds_of(folder):
    """Return the rounds that a run has completed so far; 0 before there is a record."""
    return sum(file.read_text().count('"event": "round"') for file in folder.glob("*/events.jsonl"))


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def available_bytes():
    (line,) = (each for each in Path("/proc/meminfo").read_text().splitlines() if "MemAvailable" in each)
    return 1024 * int(line.split()[1])


@pytest.mark.parametrize("name", ["mpich", pytest.param("openmpi", marks=pytest.mark.long)])
def test_many_ranks_compute_what_one_does_in_less_memory(name, many, tmp_path):
    words, mpi = many(MANY), find(name)
    one, all_ = ran(mpi, 1, words, tmp_path / "one"), ran(mpi, MANY, words, tmp_path / "many")
    assert differences(one, all_) == []
    assert len(ranks_of(all_)) == MANY
    assert median_mb(all_, "unique") < 100 < median_mb(one, "unique")


@pytest.mark.long
def test_64_ranks_on_four_virtual_nodes_compute_what_one_does(many, tmp_path, monkeypatch):
    if available_bytes() < NEEDED_BYTES:
        pytest.skip(f"64 ranks take some {NEEDED_BYTES >> 31} GB of memory")
    words, mpi = many(63), find("mpich")
    one = ran(mpi, 1, words, tmp_path / "one")
    monkeypatch.setenv("MPIR_CVAR_NUM_CLIQUES", "4")
    many_ = ran(mpi, 64, words, tmp_path / "many")
    assert differences(one, many_) == []
    assert [rank["local_rank"] for rank in ranks_of(many_)] == [rank // 4 for rank in range(64)]
    assert median_mb(many_, "proportional") < 350


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "blow", "codes"),
    [
        ("mpich", signal.SIGTERM, {75}),
        ("mpich", signal.SIGKILL, {1, 9, 137}),
        ("openmpi", signal.SIGKILL, {1, 9, 137}),
    ],
)
def test_many_ranks_that_are_struck_go_on_to_the_same_results(name, blow, codes, many, tmp_path):
    words, mpi = many(MANY, rounds=100), find(name)
    process = mpi.start(MANY, *words, tmp_path / "many", cwd=tmp_path)
    try:
        wait_for(lambda: rounds_of(tmp_path / "many") > 3)
        case = case_of(tmp_path / "many")
        pids = [rank["pid"] for rank in ranks_of(case)]
        if blow == signal.SIGTERM:
            process.send_signal(blow)
        else:
            os.kill(pids[-1], blow)
        output, _ = process.communicate(timeout=60)
    finally:
        end(process)
    assert process.returncode in codes, output
    wait_for(lambda: not any(is_running(pid) for pid in pids))
    assert load_run(case).rounds_completed < 100
    code, output = mpi.run(MANY, *words, tmp_path / "many", "--resume", cwd=tmp_path, timeout=85)
    assert code == 0, output
    assert differences(ran(mpi, 1, words, tmp_path / "one"), case) == []


def test_a_mistake_of_the_user_is_one_line_of_many_ranks(many, tmp_path):
    words = many(MANY)
    code, output = find("mpich").run(
        MANY, *words, tmp_path / "runs", "--set", "rounds=0", cwd=tmp_path, timeout=60
    )
    assert code == 2
    assert len([line for line in output.splitlines() if line.startswith("fedmpi: ")]) == 1
