"""HierFAVG's Algorithm 1 with numbers worked out by hand."""

import numpy as np

from fedmpi.analysis.summary import summarise
from fedmpi.comm.world import World
from fedmpi.programs.hooks import Hooks
from fedmpi.programs.position import Position
from fedmpi.store.reader import load_run
from tests.algorithms.programs import named, round_of
from tests.exchange.exchanged import exchanged
from tests.mpi.session import complete, only

SAMPLES = [1, 3, 2, 2]


def models_after(algorithm, number, trained):
    """Return the model of each client after a round in which the four trained these models."""
    rows = {client: np.array(row, np.float32) for client, row in enumerate(trained)}
    plan = round_of(algorithm, trained, samples=SAMPLES, number=number).plan
    found = exchanged(Hooks(algorithm, 4, Position()), plan, range(4), SAMPLES, rows, {})
    return [found[group] for group in plan.group.tolist()]


def test_edges_average_in_every_round_and_the_cloud_in_every_second():
    algorithm = named("hierfavg", edges=2, cloud_every=2)
    assert models_after(algorithm, 0, [[4, 0], [0, 4], [1, 1], [3, 5]]) == [[1, 3]] * 2 + [[2, 3]] * 2
    # Edges: (1 * 8 + 3 * 0) / 4 = 2 and (2 * 2 + 2 * 6) / 4 = 4, of four graphs each; the cloud: 3.
    assert models_after(algorithm, 1, [[8, 0], [0, 0], [2, 0], [6, 0]]) == [[3, 0]] * 4
    assert models_after(algorithm, 2, [[8, 0], [0, 0], [2, 0], [6, 0]]) == [[2, 0]] * 2 + [[4, 0]] * 2


def test_edges_have_as_many_clients_or_one_more():
    assert named("hierfavg", edges=3).groups(8).tolist() == [0, 0, 0, 1, 1, 1, 2, 2]


def test_a_cloud_that_averages_in_every_round_is_fedavg(tmp_path):
    losses = []
    for algorithm in ("fedavg", "{name='hierfavg',cloud_every=1}"):
        job = only(tmp_path / str(len(losses)), "case=fedavg", f"algorithm={algorithm}")
        complete(job, World())
        found = load_run(job.folder)
        losses.append(found.results["test_loss"])
        assert summarise(found)["splits"] == 0
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_edges_that_the_cloud_brings_together_are_no_splits(tmp_path):
    job = only(tmp_path, "case=hierfavg")
    complete(job, World())
    found = load_run(job.folder)
    edges, cloud = [0, 0, 0, 1, 1], [0] * 5
    assert found.results["group"].tolist() == [edges, edges, cloud, edges]
    assert summarise(found)["splits"] == 0
