"""What communication costs on links of a known rate: on paper and measured, for both reductions.

    python -m tests.slurm.network [--rates 1gbit 100mbit] [--rounds 21]
    python -m tests.slurm.network --ranks 2 4 8 16 [--rates 1gbit] [--out DIR]

Virtual nodes of one machine, each in a network of its own whose link carries the given rate, one rank
each; FedAvg with a wide model, so that the models are a few megabytes. Needs root, slurm-wlm, munge and
iproute2. The first command, four nodes and three clients, prints a table for bench/scaling/README.md. The
second runs 15 clients on each number of ranks and shows what ``fedmpi scaling`` makes of the runs.
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
dataset = { synthetic = { domains = CLIENTS, graphs = GRAPHS } }
partition = "per-dataset"
model = { hidden = 256 }
checkpoint_seconds = 3600.0
[matrix]
reduction = ["exact", "float32"]
"""
PREDICTED = "64,256,1024,4096"
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


def run_suite(
    rate: str, rounds: int, folder: Path, nodes: int = NODES, clients: int = NODES - 1, graphs: int = 40
) -> Path:
    """Run the suite on a cluster with such links and return its folder.

    Raises RuntimeError with the output if that fails.
    """
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="fedmpi-net-")), nodes, 1, net=rate)
    out = folder / f"runs-{rate}" / f"ranks{nodes}"
    variables = {
        **os.environ, **cluster.environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        # UCX otherwise finds shared memory between the networks, and they would not be used at all.
        "UCX_TLS": "self,tcp", "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "OMP_NUM_THREADS": "1", "FEDMPI_MPI_START_S": "60",
    }  # fmt: skip
    (folder / "network.toml").write_text(
        SUITE.replace("CLIENTS", str(clients)).replace("GRAPHS", str(graphs))
    )
    # A sweep starts the ranks once more where Slurm's PMI loses a request.
    command = ["fedmpi", "sweep", "network.toml", "--set", f"rounds={rounds}", "--out", str(out)]
    launch = f"srun -K0 -W15 -N {nodes} -n {nodes} --mpi=pmi2 fedmpi"
    command += ["--ranks", str(nodes), "--launch", launch]
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
    return out


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


def links_table(rates: list[str], rounds: int, place: Path) -> None:
    """Print both reductions' times on four nodes."""
    print("| link | reduction | MB a rank and round | on paper, ms | measured, ms | rounds/s | share, % |")
    print("|---|---|---|---|---|---|---|")
    for rate in rates:
        for path in sorted(run_suite(rate, rounds, place).iterdir()):
            print(row(load_run(path), rate), flush=True)


def ranks_table(rate: str, rounds: int, place: Path, ranks: list[int]) -> None:
    """Print what the model of ``fedmpi scaling`` makes of runs on such numbers of ranks."""
    for number in ranks:  # little to compute: all nodes share the cores of this machine
        run_suite(rate, rounds, place, number, max(ranks) - 1, graphs=10)
    command = [sys.executable, "-m", "fedmpi", "scaling", str(place / f"runs-{rate}"), "--predict", PREDICTED]
    print(rate, flush=True)
    subprocess.run(command, check=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", nargs="+", default=["1gbit", "100mbit"])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--ranks", nargs="+", type=int, help="numbers of ranks for fedmpi scaling")
    parser.add_argument("--out", type=Path, help="folder that keeps the runs")
    options = parser.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as temporary:
        place = (options.out or Path(temporary)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        if not options.ranks:
            return links_table(options.rates, options.rounds, place)
        for rate in options.rates:
            ranks_table(rate, options.rounds, place, options.ranks)
    return None


if __name__ == "__main__":
    main()
