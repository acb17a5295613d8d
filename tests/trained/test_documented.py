"""The section on trained models in docs/python.md runs as it stands."""

import re
import shlex
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
SECTION = PAGE.partition("## Take the trained model home")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"```(python|bash)\n(.*?)```", SECTION, re.DOTALL)


def test_the_examples_run_one_after_another(command):
    command("run", "synthetic/quick", "--case", "0", "--set", "rounds=1", code=0)
    runs = Path("results/runs/synthetic/quick")
    (runs / "fedavg-rounds=1").rename(runs / "fedavg")
    names = {}
    for kind, text in BLOCKS:
        if kind == "bash":
            command(*shlex.split(text)[1:], code=0)
        else:
            exec(compile(text, "example", "exec"), names)
    assert [kind for kind, _ in BLOCKS] == ["python", "python", "bash", "python"]
    assert names["model"].about.client == "synthetic-0"
