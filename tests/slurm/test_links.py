"""Nodes behind slow links: a race by the real clock between them is its replay."""

import os
import subprocess
import sys

import pytest

from fedmpi.store.reader import load_run
from tests.mpi.launcher import MPICH

RACE = """
name = "race"
[case]
dataset = { name = "synthetic", synthetic = { domains = 3, graphs = 40 } }
partition = "per-dataset"
rounds = 8
algorithm = "fedavg"
devices = "two-speed"
schedule = { name = "buffered", size = 2, clock = "real" }
"""


@pytest.mark.long
def test_a_race_over_slow_links_is_its_replay(slow_cluster, fedmpi, tmp_path):
    (tmp_path / "race.toml").write_text(RACE)
    launch = ["srun", "-K0", "-W15", "-N3", "-n3", "--mpi=pmi2", sys.executable, "-m", "fedmpi"]
    over_tcp = {
        "UCX_TLS": "self,tcp",
        "UCX_NET_DEVICES": "eth0",
        "FEDMPI_MPI_START_S": "120",
        "OMP_NUM_THREADS": "1",
        **MPICH,
    }
    done = subprocess.run(
        [*launch, "run", "race.toml", "--out", "runs"],
        env={**os.environ, **slow_cluster.environment, **over_tcp},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = load_run(tmp_path / "runs" / "case")
    model_bytes, bytes_per_second, updates = 4 * run.attempts[0].provenance["shared_parameters"], 10e6 / 8, 2
    on_the_link_s = updates * model_bytes / bytes_per_second  # of rank 0, to which each update goes
    assert run.measured("virtual_seconds").sum() > 0.8 * 8 * on_the_link_s
    assert fedmpi("replay", "runs/case", "--out", "again").stdout.endswith(
        "again is identical to runs/case\n"
    )
