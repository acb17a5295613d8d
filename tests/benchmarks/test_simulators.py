"""Rounds on two ranks beside those of simulators: the same settings, the same graphs, our half of a pair."""

import json
import os
import stat
from pathlib import Path

import pytest

from fedmpi.benchmarks.cases import choose
from fedmpi.benchmarks.peer_programs import finished, saved, version_of
from fedmpi.benchmarks.peers import load_reference
from fedmpi.benchmarks.simulators import SIMULATORS, own_run, peer_run, simulators_of
from fedmpi.benchmarks.whole_runs import command_of
from fedmpi.errors import BadInput, RunFailed

PYTHONS = [Path(each) for each in os.environ.get("FEDMPI_SIMULATORS", "").split(os.pathsep) if each]
CHUNKS = ["dataset.synthetic.domains=1", "partition=chunks", "partition.clients=2"]
TINY = [*CHUNKS, "dataset.synthetic.graphs=80", "rounds=6"]


@pytest.fixture
def program(tmp_path):
    """Return a program that stands in for a Python: it prints a line where its words hold one, else it fails."""

    def make(word, line, name="python"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\ncase \"$*\" in *{word}*) echo '{line}';; *) exit 1;; esac\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return make


@pytest.fixture
def graphs(tiny, source, tmp_path):
    """Two clients of 32 graphs to train on and 8 held out, in the peers' file."""
    return saved(tiny(*TINY), source, tmp_path / "graphs.npz")


def told(trained, evaluated):
    """Return what a simulator prints."""
    times = {"round_seconds": 0.5, "round_cpu_seconds": 0.75}
    return json.dumps(
        {**times, "trained": trained, "evaluated": evaluated, "train_loss": [2, 1], "test_accuracy": 0.6}
    )


@pytest.mark.parametrize(("name", "clients"), [("proteins-all", 10), ("nci1-all", 30)])
def test_settings_are_those_of_the_peers(name, clients):
    reference, case = load_reference(), choose("peers/simulators", [f"setting={name}"]).case
    assert (case.batch_size, case.local_epochs, case.optimizer.name) == (reference.BATCH_SIZE, 1, "adam")
    assert case.optimizer.lr == reference.LEARNING_RATE
    assert case.optimizer.weight_decay == reference.WEIGHT_DECAY
    assert (case.model.hidden, case.model.dropout) == (reference.HIDDEN, reference.DROPOUT)
    assert (case.optimizer.state, case.share, case.weights) == ("reset", "all", "samples")
    assert (case.partition.clients, case.server, case.evaluation.every) == (clients, "shared", 1)


def test_each_python_is_asked_for_each_simulator(program):
    first, second = program("pfl", "0.6.0"), program("blazefl", "3.0.0", "other")
    found = simulators_of([first, second])
    assert {title: python for title, (python, _) in found.items()} == {
        "pfl 0.6.0": first,
        "blazefl 3.0.0 threads": second,
        "blazefl 3.0.0 processes": second,
    }


def test_a_python_without_simulators_is_refused(program):
    with pytest.raises(BadInput, match="name a Python that has pfl or BlazeFL"):
        simulators_of([program("appfl", "1.12.0")])


def test_a_python_that_is_missing_has_no_package(tmp_path):
    assert version_of(tmp_path / "missing", "pfl") is None


def test_what_a_simulator_tells_is_its_outcome(program, graphs):
    python = program("--rounds=6", told([64.0], [16.0]))
    found = peer_run(
        choose("synthetic/quick", ["algorithm=fedavg", *TINY]).case, python, SIMULATORS[1], graphs
    )
    assert (found.figures["round_seconds"], found.figures["round_cpu_seconds"]) == (0.5, 0.75)
    assert (found.accuracy, found.losses) == (0.6, [2, 1])


@pytest.mark.parametrize(("trained", "evaluated"), [([63.0, 64.0], [16.0]), ([64.0], [8.0])])
def test_a_simulator_that_leaves_out_graphs_ends_it(program, graphs, trained, evaluated):
    case = choose("synthetic/quick", ["algorithm=fedavg", *TINY]).case
    with pytest.raises(RunFailed, match="not 64 and 16 graphs a round"):
        peer_run(case, program("blazefl", told(trained, evaluated)), SIMULATORS[1], graphs)


def test_the_error_of_a_peer_is_told(tmp_path):
    script = tmp_path / "peer"
    script.write_text("#!/bin/sh\necho 'ValueError: no graphs' >&2\necho 'more words' >&2\nexit 3\n")
    script.chmod(0o755)
    with pytest.raises(RunFailed, match="bench peers: pfl has ended: ValueError: no graphs"):
        finished([str(script)], "pfl")


@pytest.mark.long
def test_our_half_counts_rounds_apart_from_the_run():
    changes = ["algorithm=fedavg", *TINY, "server=shared"]
    command = command_of("synthetic/quick", changes, mirror=None, data=None, offline=True)
    found = own_run(choose("synthetic/quick", changes).case, command)
    assert 0 < 5 * found.figures["round_seconds"] < found.figures["run_wall_seconds"]
    assert 0 < 5 * found.figures["round_cpu_seconds"] < found.figures["run_cpu_seconds"]
    assert len(found.losses) == 5
    assert 0 < found.accuracy <= 1


@pytest.mark.long
@pytest.mark.skipif(not PYTHONS, reason="FEDMPI_SIMULATORS names no Python with pfl or BlazeFL")
def test_simulators_train_on_every_graph_and_learn(graphs):
    case = choose("synthetic/quick", ["algorithm=fedavg", *TINY, "rounds=12"]).case
    for python, simulator in simulators_of(PYTHONS).values():
        found = peer_run(case, python, simulator, graphs)
        assert len(found.losses) == 11
        assert found.losses[-1] < found.losses[0]
        assert 0 < found.figures["round_seconds"] * 11 < found.figures["run_wall_seconds"]
