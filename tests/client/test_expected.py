"""The FLOPs that the virtual clock counts are those that FedAvg's clients record."""

import numpy as np
import pytest

from fedmpi.client.expected import training_flops
from fedmpi.client.federation import assemble, deal, load
from fedmpi.comm.world import World
from fedmpi.runs.run import run
from fedmpi.runs.signals import StopRequest
from fedmpi.store.reader import load_run
from tests.mpi.session import Silent, only

EQUAL = ("gcn", "labels", "nodes", "parts", "ratings", "relations", "infograph")
MORE = ("links", "fclg", "mvgrl")
"""Tasks and objectives that add to their examples, or to passes over them."""


@pytest.mark.parametrize("case", EQUAL + MORE)
def test_expected_and_recorded_flops_are_equal(tmp_path, case):
    plain = ["algorithm=fedavg", "participation=1.0", "batch_size=1000", "rounds=1"]
    job = only(tmp_path, f"case={case}", *plain)
    run(job, World(), Silent(), StopRequest())
    raws = load(job.case, job.source)
    federation = assemble(job.case, raws, deal(job.case, job.algorithm, raws), job.source.cache)
    expected = [training_flops(job.case, federation, client) for client in range(federation.num_clients)]
    recorded = load_run(job.folder).results["model_flops"][0]
    if case in EQUAL:
        assert recorded.tolist() == expected
    else:
        assert ((recorded > expected) & (recorded < 1.2 * np.array(expected))).all()
