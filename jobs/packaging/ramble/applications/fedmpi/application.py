"""fedmpi under Ramble: a small suite, and a federation of any size; figures from ``fedmpi report --json``."""

from ramble.appkit import (
    ExecutableApplication,
    executable,
    figure_of_merit,
    figure_of_merit_context,
    required_package,
    software_spec,
    success_criteria,
    tags,
    workload,
    workload_variable,
)


class Fedmpi(ExecutableApplication):
    """Federated learning on graphs over MPI, on generated data: nothing is downloaded."""

    name = "fedmpi"

    tags("federated-learning", "graph-neural-networks", "mpi", "python", "synthetic-data")

    software_spec("fedmpi", pkg_spec="fedmpi", package_manager="spack*")
    required_package("fedmpi", package_manager="spack*")

    executable("quick", "fedmpi run synthetic/quick --out runs --set device={device}", use_mpi=True)
    executable(
        "federation",
        "fedmpi run synthetic/quick --case fedavg --out runs --set device={device} --set server=shared"
        " --set rounds={rounds} --set dataset.synthetic.domains={clients}"
        " --set dataset.synthetic.graphs={graphs}",
        use_mpi=True,
    )
    executable("report", "fedmpi report runs --json", use_mpi=False)

    workload("quick", executables=["quick", "report"])
    workload("federation", executables=["federation", "report"])

    workload_variable(
        "device",
        default="cpu",
        description="cpu, or cuda for GPUs: on a ROCm build of torch cuda means AMD's",
        values=["cpu", "cuda"],
        workloads=["quick", "federation"],
    )
    workload_variable("clients", default="16", description="Clients, one domain each", workload="federation")
    workload_variable("graphs", default="120", description="Graphs of a client", workload="federation")
    workload_variable("rounds", default="5", description="Rounds of FedAvg", workload="federation")

    # A case's lines have four spaces, its clients' more. Ramble strips a regex, so ^ stands first.
    figure_of_merit_context("case", regex=r'^    "case": "(?P<case>[^"]+)",', output_format="{case}")
    figure_of_merit(
        "Round, median",
        fom_regex=r'^    "round_seconds_median": (?P<value>[-+.e\d]+),',
        group_name="value",
        units="s",
        contexts=["case"],
    )
    figure_of_merit(
        "All rounds",
        fom_regex=r'^    "total_seconds": (?P<value>[-+.e\d]+),',
        group_name="value",
        units="s",
        contexts=["case"],
    )
    figure_of_merit(
        "Model rate",
        fom_regex=r'^    "model_rate": (?P<value>[-+.e\d]+),',
        group_name="value",
        units="GFLOP/s",
        contexts=["case"],
    )
    figure_of_merit(
        "Client traffic",
        fom_regex=r'^    "client_megabytes": (?P<value>[-+.e\d]+),',
        group_name="value",
        units="MB",
        contexts=["case"],
    )
    figure_of_merit(
        "Test accuracy",
        fom_regex=r'^    "test_accuracy": (?P<value>[-+.e\d]+),',
        group_name="value",
        contexts=["case"],
    )

    success_criteria("a case is complete", mode="string", match=r'^    "status": "complete",')
    success_criteria("no case is not", mode="string", anti_match=r'^    "status": "(?!complete")')
