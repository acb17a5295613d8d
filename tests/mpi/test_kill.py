"""Killed at random moments and resumed on other rank counts, a run ends with the same bits."""

import random

from tests.mpi.kill_and_resume import experiment
from tests.mpi.launcher import find
from tests.mpi.session import SUITE


def test_three_kills_change_nothing(tmp_path, capsys):
    random.seed(20)
    settings = ["rounds=60", "checkpoint_seconds=0.2"]
    experiment(find("mpich"), str(SUITE), settings, 3, tmp_path)
    assert "3 kills with SIGKILL" in capsys.readouterr().out
