"""fedmpi under Benchpark: on processors, CUDA or ROCm; strong and weak scaling; a test and a large size."""

from benchpark.directives import variant
from benchpark.experiment import Experiment
from benchpark.programming_model import ProgrammingModel, ProgrammingModelType
from benchpark.scaling import Scaling, ScalingMode

SIZES = {
    "test": {"ranks": 1, "clients": 16, "graphs": 120, "rounds": 5},
    "perf": {"ranks": 32, "clients": 512, "graphs": 400, "rounds": 21},
}
"""By ``exec_mode``; the clients are those of all ranks together."""


class Fedmpi(
    Experiment,
    ProgrammingModel(ProgrammingModelType.Mpionly, ProgrammingModelType.Cuda, ProgrammingModelType.Rocm),
    Scaling(ScalingMode.Strong, ScalingMode.Weak),
):
    """FedAvg over clients with equally many generated graphs; rank 0 is the server and hosts clients, too."""

    variant("workload", default="federation", values=("federation",), description="Of application.py")
    variant("version", default="0.1.0", values=("0.1.0",), description="Version of fedmpi")

    def compute_applications_section(self) -> None:
        """Set sizes, ranks or GPUs, and what scaling multiplies."""
        size = SIZES["test" if self.spec.satisfies("exec_mode=test") else "perf"]
        on_gpus = self.spec.satisfies("+cuda") or self.spec.satisfies("+rocm")
        resource = "n_gpus" if on_gpus else "n_ranks"
        self.add_experiment_variable(resource, size["ranks"], True)
        self.add_experiment_variable("device", "cuda" if on_gpus else "cpu")
        for name in ("clients", "graphs", "rounds"):
            self.add_experiment_variable(name, size[name], True)

        def grow(variable, iteration, dimension, factor):  # noqa: ANN001, ANN202  Benchpark's own order
            return variable.val(dimension) * factor

        def keep(variable, iteration, dimension, factor):  # noqa: ANN001, ANN202
            return variable.val(dimension)

        self.register_scaling_config(
            {
                ScalingMode.Strong: {resource: grow, "clients": keep},
                ScalingMode.Weak: {resource: grow, "clients": grow},
            }
        )
        self.set_required_variables(
            n_resources=f"{{{resource}}}",
            process_problem_size=f"{{clients}}*{{graphs}}/{{{resource}}}",
            total_problem_size="{clients}*{graphs}",
        )

    def compute_package_section(self) -> None:
        """Name the Spack package; Benchpark adds ``+cuda`` or ``+rocm`` and their architectures."""
        self.add_package_spec(self.name, [f"fedmpi@{self.spec.variants['version'][0]}"])
