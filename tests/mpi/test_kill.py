"""Struck at random moments and resumed on other rank counts, a run ends with the same bits."""

import gc
import sys

import pytest

from tests.mpi.launcher import find
from tests.mpi.storm import PLUGINS, storm


@pytest.fixture
def forgetting():
    """Forget what the examples define."""
    yield
    for name in PLUGINS:
        sys.modules.pop(f"fedmpi_plugin_{name}", None)
    gc.collect()


@pytest.mark.usefixtures("forgetting")
@pytest.mark.parametrize(
    ("algorithm", "ranks", "seed"),
    [  # seeds of other blows
        ("gcfl-plus", (3, 2), 14),  # SIGKILL to one rank
        ("ditto", (2, 1), 20),  # SIGKILL to all ranks
        ("nodes", (1, 2), 19),  # SIGKILL to the launcher
        ("links", (2, 1), 16),  # SIGTERM to one rank
        ("secagg", (2, 1), 3),  # SIGKILL to launcher and ranks
        *((name, (3, 1), seed) for name, seed in zip(PLUGINS, (14, 20, 19, 16, 3, 14), strict=True)),
    ],
)
def test_kills_change_nothing(algorithm, ranks, seed, fedmpi, tmp_path):
    counts = storm(find("mpich"), tmp_path, 1, ranks, (algorithm,), seed, rounds=60, alone=fedmpi)
    assert (counts.identical, counts.lost, counts.processes, counts.problems) == (1, 0, 0, [])
    assert counts.blows["ranks"] == {str(ranks[0]): 1}
