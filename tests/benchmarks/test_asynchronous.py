"""Asynchronous runs beside APPFL's: the same graphs, and our half of a pair."""

from itertools import chain

import pytest
import torch

from fedmpi.benchmarks.asynchronous import own_run
from fedmpi.benchmarks.cases import choose
from fedmpi.benchmarks.peers import load_reference
from fedmpi.benchmarks.whole_runs import command_of
from fedmpi.client.federation import deal, load


def test_the_peers_file_has_the_clients_graphs(tiny, source, tmp_path):
    one = [
        "dataset.synthetic.domains=1",
        "dataset.synthetic.graphs=80",
        "partition=chunks",
        "partition.clients=2",
    ]
    reference, checked = load_reference(), tiny(*one)
    source.prepare(checked.case.dataset.name)
    raws = load(checked.case, source)
    clients = reference.splits_of(raws, deal(checked.case, checked.algorithm, raws))
    reference.save_splits(tmp_path / "graphs.npz", clients, raws[0].num_classes)
    found, classes = reference.load_splits(tmp_path / "graphs.npz")
    assert classes == raws[0].num_classes
    assert [[len(part) for part in client] for client in found] == [[32, 4, 4]] * 2
    for ours, theirs in zip(clients, found, strict=True):
        for first, second in zip(chain(*ours), chain(*theirs), strict=True):
            assert all(torch.equal(first[name], second[name]) for name in ("x", "edge_index", "y"))


def test_settings_are_those_of_the_peer():
    reference = load_reference()
    for name in ("asynchronous", "buffered"):
        case = choose("peers/asynchronous", [f"setting={name}"]).case
        assert (case.batch_size, case.local_epochs, case.optimizer.name) == (reference.BATCH_SIZE, 1, "adam")
        assert case.optimizer.lr == reference.LEARNING_RATE
        assert case.optimizer.weight_decay == reference.WEIGHT_DECAY
        assert (case.optimizer.state, case.share, case.weights) == ("reset", "all", "equal")
        assert case.rounds * case.schedule.updates == 100


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["asynchronous", "buffered"])
def test_our_half_counts_the_race_apart_from_the_run(schedule):
    tiny = ["algorithm=fedavg", "dataset.synthetic.domains=3", "dataset.synthetic.graphs=40", "rounds=8"]
    size = ["schedule.size=2"] if schedule == "buffered" else []
    changes = [*tiny, f"schedule={schedule}", "schedule.clock=real", *size]
    command = command_of("synthetic/quick", changes, mirror=None, data=None, offline=True)
    found = own_run(choose("synthetic/quick", changes).case, command)
    figures, updates = found.figures, 8 * (2 if size else 1)
    assert 0 < figures["update_seconds"] * updates < figures["run_wall_seconds"]
    assert 0 < figures["update_cpu_seconds"] * updates < figures["run_cpu_seconds"]
    assert 0 < found.accuracy <= 1
