"""A rank that leaves without a word, or stands still, ends the job with a line, a code and a status."""

import re

import pytest

from fedmpi.store.reader import load_run
from tests.mpi.launcher import find

PLUGIN = """
import os, time
from mpi4py import MPI
from fedmpi.algorithms.base import Algorithm
from fedmpi.algorithms.capabilities import LocalPenalty
class Odd(LocalPenalty, Algorithm):
    name = "odd"
    calls = 0
    def penalty(self, parameters, reference, gradient):
        Odd.calls += 1
        if MPI.COMM_WORLD.rank == 1 and Odd.calls == 3:
            {act}
"""


@pytest.mark.parametrize(
    ("act", "line"),
    [
        (
            "os._exit(0)",
            r"rank 1: algorithm odd: hook penalty in \S+odd.py ended the process with exit code 0",
        ),
        ("time.sleep(600)", r"rank 1 has been in odd.penalty for 1 s \(round 1, client synthetic-2\); .*"),
    ],
)
def test_the_job_ends_and_says_why(act, line, tiny_suite, tmp_path):
    (tmp_path / "odd.py").write_text(PLUGIN.format(act=act))
    settings = ["--set", "algorithm=odd", "--set", "kernels=csr", "--set", "watchdog_seconds=1.0"]
    arguments = ["-m", "fedmpi", "run", tiny_suite, "--plugin", "odd.py", *settings, "--out", "runs"]
    code, output = find("mpich").run(2, *arguments, cwd=tmp_path, timeout=120)
    said = [text.removeprefix("fedmpi: ") for text in output.splitlines() if text.startswith("fedmpi: ")]
    assert code == 1, output
    assert len(said) == 1 and re.fullmatch(line, said[0])
    (folder,) = (tmp_path / "runs").iterdir()
    run = load_run(folder)
    assert (run.status, run.reason) == ("failed", said[0])
    assert run.rounds_completed < 4


INTERRUPTED = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r} and int(os.environ["PMI_RANK"]) in {ranks}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["fedmpi", "run", {suite!r}, "--out", "runs"]
from fedmpi.__main__ import main
main()
"""


@pytest.mark.parametrize("ranks", [(0, 1, 2), (0,)])
@pytest.mark.parametrize("module", ["fedmpi.cli.main", "fedmpi.comm.world", "fedmpi.engine.run"])
def test_ctrl_c_before_the_first_round_is_one_line_of_the_job(module, ranks, tiny_suite, tmp_path):
    """Before MPI starts, as it starts, and after; the other ranks may be elsewhere."""
    code = INTERRUPTED.format(module=module, ranks=ranks, suite=str(tiny_suite))
    assert find("mpich").run(3, "-c", code, cwd=tmp_path, timeout=120) == (75, "fedmpi: interrupted\n")
    assert not (tmp_path / "runs").exists()
