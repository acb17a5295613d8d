"""Struck at random moments and resumed on other rank counts, a run ends with the same bits."""

import pytest

from tests.mpi.launcher import find
from tests.mpi.storm import storm


@pytest.mark.parametrize(
    ("algorithm", "kills"),
    [("gcfl-plus", 1), ("ditto", 1), ("nodes", 1), ("links", 1), ("secagg", 1)],
)
def test_kills_change_nothing(algorithm, kills, tmp_path):
    counts = storm(find("mpich"), tmp_path, kills, (1, 2, 3), (algorithm,), seed=20, rounds=60)
    assert (counts.identical, counts.lost, counts.processes, counts.problems) == (1, 0, 0, [])
    assert sum(counts.blows["signal"].values()) == kills
