"""The Ramble application: its commands run, its expressions find the figures; Ramble itself where it is installed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.packaging.loading import PACKAGING, Declared, load

APPLICATION = "ramble/applications/fedmpi/application.py"
WORKSPACE = PACKAGING / "ramble" / "ramble.yaml"
DIRECTIVES = (
    "executable", "figure_of_merit", "figure_of_merit_context", "required_package", "software_spec",
    "success_criteria", "tags", "workload", "workload_variable",
)  # fmt: skip


@pytest.fixture
def declared(monkeypatch):
    """The directives of application.py."""
    found = Declared()
    appkit = {name: found.directive(name) for name in DIRECTIVES} | {"ExecutableApplication": object}
    load(APPLICATION, monkeypatch, {"ramble": {}, "ramble.appkit": appkit})
    return found


@pytest.fixture
def output(declared, fedmpi):
    """Return a function that runs a workload's commands on one rank and returns the lines they print."""
    commands = {arguments[0]: arguments[1] for arguments, _ in declared.of("executable")}
    workloads = {arguments[0]: keywords["executables"] for arguments, keywords in declared.of("workload")}

    def run(workload, **variables):
        words = [shlex.split(commands[name].format(**variables)) for name in workloads[workload]]
        assert {line[0] for line in words} == {"fedmpi"}
        return [line for each in words for line in fedmpi(*each[1:], code=0).stdout.splitlines()]

    return run


def first_match(expression, lines):
    """Return the first match as Ramble looks for it: white space around an expression is stripped."""
    return next((found for found in (re.match(expression.strip(), line) for line in lines) if found), None)


def test_figures_of_a_federation_are_found_in_what_it_prints(declared, output):
    lines = output("federation", device="cpu", clients=2, graphs=10, rounds=1)
    (((_,), context),) = declared.of("figure_of_merit_context")
    name = "fedavg-device=cpu-rounds=1-dataset.synthetic.domains=2-dataset.synthetic.graphs=10"
    assert first_match(context["regex"], lines)["case"] == name
    (report,) = json.loads("\n".join(lines[lines.index("[") :]))
    found = {
        arguments[0]: float(first_match(keywords["fom_regex"], lines)[keywords["group_name"]])
        for arguments, keywords in declared.of("figure_of_merit")
    }
    assert found == {
        "Round, median": report["round_seconds_median"],
        "All rounds": report["total_seconds"],
        "Model rate": report["model_rate"],
        "Client traffic": 2 * 2 * 4 * 24_960 / 1e6,  # clients, ways, bytes, shared parameters
        "Test accuracy": report["test_accuracy"],
    }


def test_success_is_a_complete_case_and_none_that_is_not(declared):
    criteria = {arguments[0]: keywords for arguments, keywords in declared.of("success_criteria")}
    complete, stale = ['    "status": "complete",'], ['    "status": "diverged",']
    match = criteria["a case is complete"]["match"]
    anti_match = criteria["no case is not"]["anti_match"]
    assert first_match(match, complete) and not first_match(match, stale)
    assert first_match(anti_match, stale) and not first_match(anti_match, complete)


def test_the_workspace_sets_what_the_workloads_have(declared):
    variables = {}
    for (name,), keywords in declared.of("workload_variable"):
        for workload in keywords.get("workloads", [keywords.get("workload")]):
            variables.setdefault(workload, set()).add(name)
    workloads = yaml.safe_load(WORKSPACE.read_text())["ramble"]["applications"]["fedmpi"]["workloads"]
    assert list(workloads) == ["quick", "federation"]
    for workload, content in workloads.items():
        for experiment in content["experiments"].values():
            assert set(experiment["variables"]) - {"n_ranks"} <= variables[workload]


@pytest.fixture
def ramble(tmp_path):
    """Return a function that calls Ramble, from the path or FEDMPI_RAMBLE, and knows the application."""
    program = os.environ.get("FEDMPI_RAMBLE") or shutil.which("ramble")
    if program is None:
        pytest.skip("no ramble here: it is on no package index (a clone's bin/ramble: FEDMPI_RAMBLE)")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    kernels = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # compiled once per machine
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": path, "XDG_CACHE_HOME": kernels}

    def call(*words):
        done = subprocess.run(
            [program, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    call("repo", "add", PACKAGING / "ramble")
    return call


def test_ramble_sets_it_up_and_analyses_it(ramble, tmp_path):
    config = yaml.safe_load(WORKSPACE.read_text())
    federation = config["ramble"]["applications"]["fedmpi"]["workloads"]["federation"]
    federation["experiments"] = {
        "tiny": {"variables": {"n_ranks": 2, "clients": 2, "graphs": 10, "rounds": 1}}
    }
    del config["ramble"]["applications"]["fedmpi"]["workloads"]["quick"]
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(config))
    ramble("workspace", "create", "-d", "ws", "-c", tmp_path / "tiny.yaml")
    ramble("-D", "ws", "workspace", "setup")
    ramble("-D", "ws", "on")
    ramble("-D", "ws", "workspace", "analyze", "-f", "json")
    (found,) = (tmp_path / "ws").glob("results.*-*.json")
    (experiment,) = json.loads(found.read_text())["experiments"]
    assert experiment["RAMBLE_STATUS"] == "SUCCESS"
    (context,) = experiment["CONTEXTS"]
    assert {figure["name"] for figure in context["foms"]} == {
        "Round, median", "All rounds", "Model rate", "Client traffic", "Test accuracy",
    }  # fmt: skip
