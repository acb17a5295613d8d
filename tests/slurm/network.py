"""What communication costs on links of a known rate: on paper and measured, for both reductions.

    python -m tests.slurm.network [--rates 1gbit 100mbit] [--rounds 21]

Four virtual nodes of one machine, each in a network of its own whose link carries the given rate, one rank
each; FedAvg over three clients with a wide model, so that the models are a few megabytes. Needs root,
slurm-wlm, munge and iproute2. The last table goes into bench/scaling/README.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from fedmpi.store.reader import Run, load_run
from tests.slurm.cluster import Cluster, missing

NODES = 4
SUITE = """
name = "network"
[case]
algorithm = "fedavg"
dataset = { synthetic = { domains = 3, graphs = 40 } }
partition = "per-dataset"
model = { hidden = 256 }
checkpoint_seconds = 3600.0
[matrix]
reduction = ["exact", "float32"]
"""
BITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
BYTES_UP = {"exact": 8, "float32": 4}
BYTES_DOWN = 4


def bits_per_second(rate: str) -> float:
    """Return a rate of `tc`, such as 100mbit, as a number; open links have none."""
    return float("inf") if rate == "open" else float(rate[:-4]) * BITS[rate[-4:]]


def on_paper(reduction: str, shared: int, rate: str) -> tuple[float, float]:
    """Return the least and the most seconds that a round's models need on the server's link.

    Least: the sums cross it once and the new model once. Most: every worker's message crosses it.
    """
    once = shared * (BYTES_UP[reduction] + BYTES_DOWN) * 8 / bits_per_second(rate)
    return once, (NODES - 1) * once


def run_suite(rate: str, rounds: int, folder: Path) -> None:
    """Run the suite on a cluster with such links; RuntimeError with the output if that fails."""
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="fedmpi-net-")), NODES, 1, net=rate)
    variables = {
        **os.environ, **cluster.environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        # UCX otherwise finds shared memory between the networks, and they would not be used at all.
        "UCX_TLS": "self,tcp", "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "OMP_NUM_THREADS": "1",
        "MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "1000000000",
    }  # fmt: skip
    (folder / "network.toml").write_text(SUITE)
    command = ["srun", "-K0", "-W15", "-N", str(NODES), "-n", str(NODES), "--mpi=pmi2", "fedmpi", "run"]
    command += ["network.toml", "--set", f"rounds={rounds}", "--out", f"runs-{rate}"]
    try:
        cluster.start()
        done = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, timeout=1200
        )
    finally:
        cluster.stop()
        shutil.rmtree(cluster.folder, ignore_errors=True)
    if done.returncode != 0:
        raise RuntimeError(f"{done.stdout[-3000:]}{done.stderr[-3000:]}")


def row(run: Run, rate: str) -> str:
    """Return a line of the table: medians over the rounds but the first, of the rank that communicates longest.

    Not of rank 0: it is through with a broadcast once the data are on their way.
    """
    attempt = run.attempts[0]
    reduction = run.config["reduction"]["name"]
    shared = attempt.provenance["shared_parameters"]
    round_s = np.median(attempt.measurements["round_seconds"][1:])
    phases = attempt.measurements["phase_seconds"][1:, :, attempt.phases.index("communicate")]
    communicate = float(np.median(phases.max(axis=1)))
    least, most = on_paper(reduction, shared, rate)
    megabytes = shared * (BYTES_UP[reduction] + BYTES_DOWN) / 1e6
    return (
        f"| {rate} | {reduction} | {megabytes:.2f} | {1e3 * least:.0f} to {1e3 * most:.0f} | "
        f"{1e3 * communicate:.0f} | {1 / round_s:.2f} | {100 * communicate / round_s:.0f} |"
    )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", nargs="+", default=["1gbit", "100mbit"])
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    print("| link | reduction | MB a rank and round | on paper, ms | measured, ms | rounds/s | share, % |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        for rate in options.rates:
            run_suite(rate, options.rounds, Path(place))
            for path in sorted((Path(place) / f"runs-{rate}").iterdir()):
                print(row(load_run(path), rate), flush=True)


if __name__ == "__main__":
    main()
