"""Struck at random moments and resumed on other rank counts, a run ends with the same bits."""

import pytest

from tests.mpi.launcher import find
from tests.mpi.storm import storm


@pytest.mark.parametrize("algorithm", ["gcfl-plus", "ditto"])
def test_three_kills_change_nothing(tmp_path, algorithm):
    counts = storm(find("mpich"), tmp_path, 3, (1, 2, 3), (algorithm,), seed=20, rounds=60)
    assert (counts.identical, counts.lost, counts.processes, counts.problems) == (1, 0, 0, [])
    assert sum(counts.blows["signal"].values()) == 3
