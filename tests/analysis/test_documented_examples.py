"""The examples of loading in docs/python.md run as they stand."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
TEXT = PAGE.partition("## Read records")[2].partition("## Draw")[0]
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def table3(tmp_path, make_run, monkeypatch):
    """Made-up runs where `fedmpi run gcfl/table3` puts them."""
    monkeypatch.chdir(tmp_path)
    for algorithm, gain in (("self-train", 0.0), ("fedavg", 0.1)):
        for seed in (10, 42):
            folder = tmp_path / "results" / "runs" / "gcfl" / "table3" / f"{algorithm}-{seed}"
            scores, own = [[0.5, 0.4], [0.6 + gain, 0.7 + gain]], {"algorithm": algorithm}
            make_run(folder, scores, seed=seed, settings=own)


def test_there_are_three():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        (0, r"PROTEINS\s+fedavg\s+2\s+0\.75\s+0\.0\s+2"),
        (1, r"PROTEINS\s+client-0\s+0\.1\s+0\.0"),
        (2, r"fedavg\s+0\.167"),
    ],
)
def test_an_example_prints_what_it_promises(table3, capsys, number, printed):
    exec(compile(EXAMPLES[number], "example", "exec"), {})
    assert re.search(printed, capsys.readouterr().out)
