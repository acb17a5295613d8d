"""The architecture's rules on imports."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_layers_import_only_downwards():
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([linter, "--config", "setup.cfg", "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


BLOCKED = """
import sys
for name in ("torch", "mpi4py", "torch_geometric"):
    sys.modules[name] = None
sys.argv = ["fedmpi", *{arguments!r}]
from fedmpi.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["run", "synthetic/quick", "--list"],
        ["data", "list"],
        ["info"],
        ["report", "."],
        ["compare", "a", "b"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_login_node_commands_need_neither_torch_nor_mpi(arguments, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED.format(arguments=arguments)], cwd=tmp_path, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == (2 if arguments[0] in ("report", "compare") else 0)
