"""The examples of docs/extend.md, taken from the page and run as it says."""

import re

import pytest

from fedmpi.store.reader import load_run
from tests.mpi.launcher import ROOT, find

EXAMPLE = re.compile(
    r"`(\w+\.py)`:\n\n```python\n(.*?)```\n\n```bash\nmpiexec -n 2 fedmpi (.*?)\n```", re.DOTALL
)
PAGE = (ROOT / "docs" / "extend.md").read_text()
EXAMPLES = {file: (text, command.split()) for file, text, command in EXAMPLE.findall(PAGE)}


def test_the_page_has_an_example_of_each_kind():
    assert list(EXAMPLES) == ["rings.py", "bysize.py", "deepsets.py", "barlow.py", "edgecount.py"]


@pytest.mark.parametrize("file", EXAMPLES)
def test_an_example_runs_as_the_page_says(file, tmp_path):
    text, arguments = EXAMPLES[file]
    (tmp_path / file).write_text(text)
    command = ("-m", "fedmpi", *arguments, "--out", "runs")
    code, output = find("mpich").run(2, *command, cwd=tmp_path, timeout=300)
    assert code == 0, output
    (folder,) = (tmp_path / "runs").iterdir()
    run = load_run(folder)
    assert (run.status, run.rounds_completed) == ("complete", 2)
    assert list(run.config["plugin"]) == [file]
    counted = file in ("deepsets.py", "barlow.py")
    words = "counted by torch on one batch" if counted else "by formula"
    assert run.attempts[-1].provenance["model_flops"] == words
    assert (run.results["model_flops"] > 0).all()
