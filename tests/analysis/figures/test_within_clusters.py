from dataclasses import replace

import numpy as np
import pytest

from fedmpi.analysis.clusterings import TableMaker
from fedmpi.analysis.figures import style
from fedmpi.datasets.loading import load_all
from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.raw import digest
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.heterogeneity.clusters import within, within_one
from fedmpi.heterogeneity.distances import WalkOptions
from fedmpi.partition.options import PerDataset
from fedmpi.partition.partition import make
from fedmpi.partition.table import describe

DATASET = {"name": "synthetic", "synthetic": {"domains": 4, "graphs": 12}}
CLIENTS = tuple(f"synthetic-{domain}" for domain in range(4))
FOREIGN = np.array([f"{name} {'0' * 64}" for name in CLIENTS])


@pytest.fixture
def run(record):
    """Return a function that makes a run of four clients, of synthetic domains, from their clusters."""
    raws = load_all(DatasetOptions.model_validate(DATASET), None)
    arrays = describe(make(PerDataset(), raws), raws).arrays()
    digests = np.array([f"{raw.name} {digest(raw)}" for raw in raws])

    def make_run(group, **settings):
        made = record({"dataset": DATASET, **settings}, CLIENTS, group=group)
        return replace(made, partition={**arrays, "dataset_digests": digests})

    return make_run


def dots(axis):
    """Return the values of the dots by kind and row."""
    return {line.get_gid(): float(line.get_xdata()[0]) for line in axis.lines if line.get_gid()}


def test_a_row_per_final_cluster_and_two_for_all(run, draw):
    case = run([[0, 0, 0, 0], [2, 2, 0, 1]])
    (axis,) = draw("within-clusters", [case], walks=50).axes
    labels = [label.get_text() for label in axis.get_yticklabels()]
    assert labels == [
        "synthetic-0, synthetic-1", "synthetic-2", "synthetic-3", "all clusters",
        "all clusters, pairs of\ndifferent clients",
    ]  # fmt: skip
    table = TableMaker(DataSource.from_environment(), WalkOptions(walks=50)).of(case).structure
    group = np.array([2, 2, 0, 1])
    found = dots(axis)
    assert found["structure 0"] == within_one(table, group == 2).mean
    assert found["structure 2"] == table.mean[3, 3]
    assert found["structure 3"] == within(table, group).mean
    assert found["structure 4"] == table.mean[0, 1]
    assert len(found) == 10
    before = within(table, np.zeros(4, int)).mean
    assert before in [float(line.get_xdata()[0]) for line in axis.lines if not line.get_gid()]


def test_a_panel_per_run_and_without_a_split_neither_a_cluster_nor_a_control(run, draw):
    picture = draw("within-clusters", [run([[0, 0, 0, 0]], seed=seed) for seed in (10, 42)], walks=50)
    titles = [axis.get_title(loc="left") for axis in picture.axes]
    assert titles == ["FedAvg on synthetic, seed 10", "FedAvg on synthetic, seed 42"]
    assert "100 partitions into clusters of the same sizes" in style.caption(picture).replace("\n", " ")
    axis = picture.axes[0]
    labels = [label.get_text() for label in axis.get_yticklabels()]
    assert labels == ["all clusters", "all clusters, pairs of\ndifferent clients"]
    assert 5.5 not in {line.get_linewidth() for line in axis.lines if not line.get_gid()}


@pytest.mark.parametrize(
    ("partition", "options", "words"),
    [
        ({"dataset_digests": FOREIGN}, {}, "synthetic-0 at hand is not the one that the run was made with"),
        ({"train_index": None}, {}, "does not say which graphs its clients hold"),
        ({}, {"length": 1}, "2 to 7 steps"),
    ],
)
def test_runs_of_other_data_and_walks_beyond_limits_are_refused(run, draw, partition, options, words):
    case = run([[0, 0, 0, 0]])
    kept = {name: values for name, values in (case.partition | partition).items() if values is not None}
    with pytest.raises(BadInput, match=words):
        draw("within-clusters", [replace(case, partition=kept)], **{"walks": 50, **options})


def test_a_picture_for_too_many_runs_is_refused(run, draw):
    with pytest.raises(BadInput, match="a panel per run, at most 12; here are 13"):
        draw("within-clusters", [run([[0, 0, 0, 0]])] * 13)
