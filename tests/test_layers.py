"""The architecture's rules on imports."""

import ast
import json
import os
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_layers_import_only_downwards():
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [linter, "--config", "setup.cfg", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def imports_of(name, path, modules):
    """Return the modules of fedmpi that one imports, for types too; those within functions are left out."""
    found, nodes = set(), [ast.parse(path.read_text())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {part if part in modules else node.module for part in parts}
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
    return found & modules - {name}


def cycle_in(graph):
    """Return one circle of a graph as text, nothing where it has none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " <- ".join(error.args[1])
    return ""


def test_no_circle_of_imports():
    """Of the whole package, imports under `if TYPE_CHECKING` counted."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / "fedmpi").rglob("*.py")
    }
    graph = {name: imports_of(name, path, set(paths)) for name, path in paths.items()}
    assert graph["fedmpi.client.client"] >= {"fedmpi.client.trainee", "fedmpi.programs.hooks"}
    assert graph["fedmpi"] == {"fedmpi.api"}
    assert not cycle_in(graph)


def test_a_circle_is_named():
    assert cycle_in({"a": {"b"}, "b": {"a"}, "c": {"a"}}) in ("a <- b <- a", "b <- a <- b")


BLOCKED = """
import json, sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "mpi4py", "torch_geometric"):
            raise ImportError(name)
sys.meta_path.insert(0, Refused())
from fedmpi.cli.main import main
for words in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, words
"""


def without_torch(folder, *commands):
    """Run command lines, to their good ends, where torch and mpi4py cannot be imported; return what was printed."""
    words = [sys.executable, "-c", BLOCKED, json.dumps([command.split() for command in commands])]
    wide = {**os.environ, "COLUMNS": "400"}
    done = subprocess.run(words, cwd=folder, env=wide, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def test_login_node_commands_need_neither_torch_nor_mpi(tmp_path):
    rows = sorted((ROOT / "results/reference/leaderboard").glob("*.csv"))
    without_torch(
        tmp_path,
        "--help",
        "run synthetic/quick --list",
        "data list",
        "suites gcfl",
        "options algorithm fedprox",
        "new mine.toml",
        "info",
        "jobs systems",
        f"leaderboard page {' '.join(map(str, rows))}",
        "jobs plan gcfl/table3 --system generic-cpu",
        "jobs render gcfl/table3 --system generic-gpu --to scripts",
    )


def test_records_are_read_without_torch_and_mpi(fedmpi, tiny_suite, tmp_path):
    assert fedmpi("run", tiny_suite, "--out", "runs").returncode == 0
    without_torch(
        tmp_path,
        "report runs",
        "report runs --html page.html --markdown --latex",
        "compare --identical runs runs",
        "compare runs runs",
        "watch runs --once",
        "scaling runs --predict 4",
        "export runs --tensorboard tb",
        f"records pack runs --suite {tiny_suite} --out runs.tar.gz",
        "records verify runs.tar.gz",
        "records repair runs/fedavg",
    )


def test_a_run_without_an_extra_imports_none():
    extras = (
        "cryptography",
        "dp_accounting",
        "rdkit",
        "pymetis",
        "pyarrow",
        "pandas",
        "matplotlib",
        "baycomp",
    )
    code = f"import sys\nfor name in {extras!r}: sys.modules[name] = None\nimport fedmpi.runs.run, fedmpi.cli.run"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_a_run_imports_only_what_its_rounds_need(tmp_path):
    slow = ("sklearn", "scipy.stats", "tslearn", "pandas", "matplotlib", "torch._dynamo", "torch_geometric")
    code = f"""
import atexit, sys
from fedmpi.__main__ import main
sys.argv[1:] = ["run", "synthetic/quick", "--case", "fedavg", "--set", "rounds=1", "--out", {str(tmp_path)!r}]
atexit.register(lambda: print("imported:", [name for name in {slow!r} if name in sys.modules]))
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "imported: []", done.stderr
