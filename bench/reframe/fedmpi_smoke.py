"""The smoke suite under ReFrame: three algorithms on generated graphs, figures of merit from the records.

``reframe -C bench/reframe/local.py -c bench/reframe/fedmpi_smoke.py -r --performance-report``
"""

from __future__ import annotations

import json
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_before, sanity_function, variable

CASES = ("fedavg", "fedprox", "self-train")


@rfm.simple_test
class FedmpiSmoke(rfm.RunOnlyRegressionTest):
    """``fedmpi run synthetic/quick`` on a few ranks: every case complete, the accuracy of any rank count."""

    descr = "fedmpi: federated graph classification over MPI, generated data"
    valid_systems = ["*"]  # noqa: RUF012  ReFrame's own way
    valid_prog_environs = ["*"]  # noqa: RUF012
    sourcesdir = None
    executable = "fedmpi"
    time_limit = "10m"

    rounds = variable(int, value=20)
    ranks = parameter([1, 3])

    @run_before("run")
    def set_launch(self) -> None:
        """Ask for the ranks; write the figures after the run, in JSON."""
        self.num_tasks = self.ranks
        self.env_vars = {"OMP_NUM_THREADS": 1, "OMP_WAIT_POLICY": "PASSIVE"}
        cases = [f"--set=rounds={self.rounds}"] if self.rounds != 20 else []
        self.executable_opts = ["run", "synthetic/quick", "--out", "runs", *cases]
        self.postrun_cmds = ["fedmpi report runs --json >report.json"]

    @sn.deferrable
    def figure(self, algorithm: str, name: str) -> Any:
        """Return a figure of merit of an algorithm's case; docs/metrics.md defines them."""
        with open(sn.evaluate(self.stagedir) + "/report.json") as file:
            (found,) = [row for row in json.load(file) if row["algorithm"] == algorithm]
        return found[name]

    @sanity_function
    def all_cases_are_complete(self) -> Any:
        """Every case ran to its last round, and the averaged models learnt what there is to learn."""
        checks = [sn.assert_eq(self.figure(case, "status"), "complete") for case in CASES]
        checks += [sn.assert_eq(self.figure(case, "rounds"), self.rounds) for case in CASES]
        least = 0.8 if self.rounds >= 20 else 0.5
        return sn.all([*checks, sn.assert_ge(self.figure("fedavg", "test_accuracy"), least)])

    @performance_function("s")
    def round_seconds(self) -> Any:
        """Median seconds of a round of FedAvg; down."""
        return self.figure("fedavg", "round_seconds_median")

    @performance_function("GFLOP/s")
    def model_rate(self) -> Any:
        """Model FLOPs of FedAvg per second of its rounds, all ranks together; up."""
        return self.figure("fedavg", "model_gflop") / self.figure("fedavg", "total_seconds")

    @performance_function("MB")
    def client_megabytes(self) -> Any:
        """Algorithmic traffic of FedAvg; the same on any number of ranks."""
        return self.figure("fedavg", "client_megabytes")

    @performance_function("%")
    def test_accuracy(self) -> Any:
        """Accuracy of FedAvg after the last round; the same on any number of ranks."""
        return 100 * self.figure("fedavg", "test_accuracy")
