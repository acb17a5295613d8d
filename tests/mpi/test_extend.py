"""The examples of docs/extend.md and docs/extend-data.md, taken from the pages and run as they say."""

import json
import re

import pytest

from fedmpi.store.reader import load_run
from tests.mpi.examples import EXAMPLES, examples
from tests.mpi.launcher import ROOT, find

PAGE = (ROOT / "docs" / "extend.md").read_text()


def test_the_pages_have_an_example_of_each_kind():
    of_data = "rings.py bysize.py deepsets.py barlow.py edgecount.py"
    of_algorithms = "partial.py half.py sam.py careful.py roots.py fomo.py distil.py"
    assert " ".join(examples("extend.md")) == of_algorithms
    assert " ".join(examples("extend-data.md")) == of_data


@pytest.mark.long
@pytest.mark.usefixtures("forgetting")
@pytest.mark.parametrize("file", EXAMPLES)
def test_an_example_runs_as_the_page_says(file, fedmpi, tmp_path):
    """The task's example on two ranks, the others in this process."""
    text, arguments = EXAMPLES[file]
    (tmp_path / file).write_text(text)
    command = (*arguments, "--out", "runs")
    if file == "edgecount.py":
        code, output = find("mpich").run(2, "-m", "fedmpi", *command, cwd=tmp_path, timeout=300)
        assert code == 0, output
    else:
        done = fedmpi(*command)
        assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    run = load_run(folder)
    assert (run.status, run.rounds_completed) == ("complete", 2)
    assert list(run.config["plugin"]) == [file]
    counted = file in ("deepsets.py", "barlow.py")
    words = "counted by torch on one batch" if counted else "by formula"
    assert run.attempts[-1].provenance["model_flops"] == words
    assert (run.results["model_flops"] > 0).all()


@pytest.mark.long
def test_an_algorithm_runs_beside_fedavg(tmp_path, fedmpi):
    for file, text in re.findall(r"`(half\.\w+)`:\n\n```\w+\n(.*?)```", PAGE, re.DOTALL):
        (tmp_path / file).write_text(text)
    command = re.search(r"^mpiexec -n 3 fedmpi (run half\.toml .*)$", PAGE, re.MULTILINE)
    less = ("--set", "rounds=2", "--set", "dataset.synthetic.graphs=40")
    arguments = (*command.group(1).split(), *less, "--out", "results/runs/half")
    code, output = find("mpich").run(2, "-m", "fedmpi", *arguments, cwd=tmp_path, timeout=300)
    assert code == 0, output
    report = fedmpi("report", "results/runs/half", "--json", "--by", "algorithm")
    fedavg, half = json.loads(report.stdout)
    assert (fedavg["algorithm"], half["algorithm"], half["reference"]) == ("FedAvg", "half", "FedAvg")
    assert half["seeds"] == [1, 2, 3, 4, 5]
    assert half["pairs"] == 5
    assert half["lead_half"] > 0
