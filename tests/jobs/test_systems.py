"""System files: the bundled ones fit the schema, others are refused in one line."""

from pathlib import Path

import pytest

from fedmpi.jobs import systems
from tests.jobs.conftest import PLAIN
from tests.refusals import refused

ROOT = Path(__file__).parent.parent.parent


def test_the_systems_that_come_along():
    names = ["generic-cpu", "generic-gpu", "levante", "perlmutter-gpu", "workstation"]
    assert list(systems.known()) == names
    for name in systems.known():
        assert systems.load(name).description
    assert systems.load("levante").request.options == ("--exclusive",)
    assert systems.load("perlmutter-gpu").node.gpus == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("cores = 4", "core = 4"), ["node.core: unknown key", 'did you mean "cores"?']),
        (("cores = 4", "cores = 0"), ["node.cores", "greater than or equal to 1", "got 0"]),
        (("minutes = 60", ""), ["limits.minutes: field required"]),
        (('"2G"', '"2 GB"'), ["request.memory_per_rank"]),
        (('"short"', '"short\\nrm -rf /"'), ["request.partition"]),
        (("cores = 4", 'cores = 4\ngpu_option = "gpu:1"'), ["'gpu:1' is no option of sbatch"]),
        (("cores = 4", 'cores = 4\ngpu_option = "--gres=gpu:{foo}"'), ["in braces stands {gpus} alone"]),
        (("start_seconds = 10.0", "gflops = 1e-300"), ["model.gflops", "greater than or equal to 0.001"]),
        (("start_seconds = 10.0", "start_seconds = 1e300"), ["model.start_seconds", "or equal to 86400"]),
        (("cores = 4", f"cores = {'9' * 5000}"), ["a number of more than 64 bits"]),
        (("cores = 4", "cores = = 4"), ["not TOML"]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_a_wrong_file_is_refused_with_its_key(tmp_path, change, words):
    path = tmp_path / "mine.toml"
    path.write_text(PLAIN.replace(*change))
    with refused() as found:
        systems.load(str(path))
    for word in (str(path), *words):
        assert word in str(found.value)


def test_an_unknown_system_lists_those_there_are():
    with refused('no such system; did you mean "generic-cpu"? (known: generic-cpu, '):
        systems.load("generic-cpus")


def test_every_field_is_in_the_readme():
    readme = (ROOT / "jobs" / "systems" / "README.md").read_text()
    for name, default, meaning in systems.fields():
        assert f"| `{name}` | {default if default == 'required' else f'`{default}`'} | {meaning} |" in readme
