"""No kernel is compiled while a round is timed."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from fedmpi.graphs.jit import _folder
from tests.mpi.molecules import prepare
from tests.started import sets

SCRIPT = """
import gc, sys
from numba.core.dispatcher import Dispatcher
from fedmpi.cli.main import main
from fedmpi.runs import run

def compiled():
    found = [thing for thing in gc.get_objects() if isinstance(thing, Dispatcher)]
    return {(d.py_func.__qualname__, s) for d in found if "fedmpi" in d.py_func.__module__ for s in d.signatures}

known, compile = set(), run._compile

def note(*arguments):
    compile(*arguments)
    known.update(compiled())

run._compile = note
try:
    main()
except SystemExit as ended:
    assert not ended.code
assert known
for name, signature in compiled() - known:
    print("LATE", name, signature)
"""


PARENT = """
import json, os, sys
import fedmpi.cli.run, fedmpi.runs.run, fedmpi.client.states, torch_geometric.nn

for line in sys.stdin:
    script, arguments, folder, output = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), 1)
        sys.argv = ["fedmpi", *arguments]
        code = 1
        try:
            exec(script)
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def forked():
    """Return a function that runs a command with the script above in a process of its own.

    The processes are forks of one that has imported everything and compiled nothing.
    """
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:

        def run(folder, *arguments):
            output = folder / "output.txt"
            print(json.dumps([SCRIPT, arguments, str(folder), str(output)]), file=parent.stdin, flush=True)
            assert parent.stdout.readline() == "0\n"
            return output.read_text()

        yield run
        parent.stdin.close()


UNSUPERVISED = """
[case]
rounds = 2
local_epochs = 2
batch_size = 8
share = "all"
model = "gin-encoder"
dataset = { name = "synthetic", synthetic = { domains = 1, graphs = 60 } }
partition = { name = "dominant-share", clients = 4 }

[matrix]
objective = ["fclg", "fclg-h", "infograph"]
"""


MOLECULES = """
[case]
rounds = 2
batch_size = 1
share = "all"
dataset = "SIDER"
partition = { name = "fedgraphnn", alpha = 2.0 }

[matrix]
model = ["fedgraphnn/gcn", "fedgraphnn/gat", "mpnn", "gin"]
"""


NODES = """
[case]
rounds = 2
share = "all"
dataset = "synthetic-nodes"
partition = "louvain"
kernels = "compiled"

[matrix]
model = ["gcn", { label = "sage", model = { name = "sage", head_layers = 1 } }, "gin"]
"""


MODELS = ("gin", "{ name = 'gin', norm = 'batch+graph' }", "fedstar", "gcn", "gat", "sage", "sgc", "mpnn")


@pytest.mark.long
@pytest.mark.parametrize(
    ("suite", "case", "settings"),
    [
        *(("", "0", (f"model={model}",)) for model in MODELS),
        *((UNSUPERVISED, case, ()) for case in "012"),
        *zip([MOLECULES] * 3, "012", [(), ("algorithm=fedprox",), ()], strict=True),
        (MOLECULES, "3", ("kernels=compiled", "batch_size=8")),
        *((NODES, case, ()) for case in "012"),
    ],
)
def test_a_run_compiles_nothing_after_its_warm_up(suite, case, settings, tiny_suite, tmp_path, forked):
    path = tmp_path / "suite.toml" if suite else tiny_suite
    path.write_text(suite or path.read_text())
    data = ("--data", str(prepare(tmp_path / "data"))) if suite == MOLECULES else ()
    output = forked(tmp_path, "run", str(path), "--case", case, "--out", "runs", *sets(*settings), *data)
    assert re.search(r"round (\d)/\1 ", output)
    assert "LATE" not in output


@pytest.mark.long
def test_a_cache_file_that_is_cut_short_is_made_anew(
    tmp_path, tiny_suite, fedmpi, fedmpi_process, monkeypatch
):
    command = ("run", str(tiny_suite), "--set", "kernels=csr", "--case", "0", "--out")
    assert fedmpi(*command, "first").returncode == 0
    place = tmp_path / "cache" / "fedmpi" / "kernels"
    for file in [*_folder().glob("*/*.nbi"), *_folder().glob("*/*.nbc")]:
        (place / _folder().name / file.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place / _folder().name / file.parent.name)
    indices = list(place.rglob("*adam*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    process = fedmpi_process(*command, "second")
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
    assert list(place.rglob("*adam*.nbi"))
    assert all(index.stat().st_size for index in place.rglob("*adam*.nbi"))
