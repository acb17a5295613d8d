"""The Benchpark experiment: sizes, devices and what scaling multiplies, with stand-ins for Benchpark."""

from enum import Enum

import pytest

from tests.packaging.loading import Declared, load


class Mode(Enum):
    Strong = "strong"
    Weak = "weak"


class Values:
    """A variable of Benchpark: the last of its values."""

    def __init__(self, value):
        self.value = value

    def val(self, _dimension):
        return self.value


class Experiment:
    """What the experiment calls of its base class."""

    name = "fedmpi"

    def __init__(self, *properties):
        self.variables, self.required, self.packages = {}, {}, {}
        self.spec = self
        self.properties = properties
        self.variants = {"version": ["0.1.0"]}

    def satisfies(self, wanted):
        return wanted in self.properties

    def add_experiment_variable(self, name, value, named=False):
        self.variables[name] = value

    def register_scaling_config(self, config):
        self.scaling = config

    def set_required_variables(self, **variables):
        self.required = variables

    def add_package_spec(self, name, specs):
        self.packages[name] = specs


@pytest.fixture
def experiment(monkeypatch):
    """Return a function that makes the experiment of some properties and computes its sections."""

    def mixin(name):
        return type(name, (), {})

    modules = {
        "benchpark": {},
        "benchpark.directives": {"variant": Declared().directive("variant")},
        "benchpark.experiment": {"Experiment": Experiment},
        "benchpark.programming_model": {
            "ProgrammingModelType": Enum("ProgrammingModelType", "Mpionly Cuda Rocm"),
            "ProgrammingModel": lambda *models: mixin("ProgrammingModel"),
        },
        "benchpark.scaling": {"ScalingMode": Mode, "Scaling": lambda *modes: mixin("Scaling")},
    }
    found = load("benchpark/fedmpi/experiment.py", monkeypatch, modules)["Fedmpi"]

    def make(*properties):
        made = found(*properties)
        made.compute_applications_section()
        made.compute_package_section()
        return made

    return make


def test_the_small_size_is_for_one_rank(experiment):
    found = experiment("exec_mode=test")
    assert found.variables == {"n_ranks": 1, "device": "cpu", "clients": 16, "graphs": 120, "rounds": 5}
    assert found.packages == {"fedmpi": ["fedmpi@0.1.0"]}


def test_the_large_size_has_512_clients(experiment):
    found = experiment("exec_mode=perf")
    assert found.variables == {"n_ranks": 32, "device": "cpu", "clients": 512, "graphs": 400, "rounds": 21}
    assert found.required == {
        "n_resources": "{n_ranks}",
        "process_problem_size": "{clients}*{graphs}/{n_ranks}",
        "total_problem_size": "{clients}*{graphs}",
    }


@pytest.mark.parametrize("model", ["+cuda", "+rocm"])
def test_on_gpus_of_both_makers_torch_calls_them_cuda(experiment, model):
    found = experiment("exec_mode=test", model)
    assert (found.variables["device"], found.variables["n_gpus"]) == ("cuda", 1)
    assert "n_ranks" not in found.variables


@pytest.mark.parametrize(("mode", "ranks", "clients"), [(Mode.Strong, 64, 512), (Mode.Weak, 64, 1024)])
def test_scaling_multiplies_the_ranks_and_when_weak_the_clients(experiment, mode, ranks, clients):
    scaling = experiment("exec_mode=perf").scaling[mode]
    assert scaling["n_ranks"](Values(32), 0, "n_ranks", 2) == ranks
    assert scaling["clients"](Values(512), 0, "clients", 2) == clients
