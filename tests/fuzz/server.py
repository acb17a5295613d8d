"""Runs commands, each in a forked child of one warm process, and says how each ended.

A child may crash, hang or ask for all memory: the parent sees its signal, its
streams and its memory, and the next input finds the same fresh process. Guards
end a child that takes too long or too much; faulthandler then says where it was.
"""

from __future__ import annotations

import faulthandler
import functools
import gc
import importlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

import mpi4py
import typer.main

from fedmpi.cli.ending import exit_code

ROOT = Path(__file__).parent.parent.parent

LOADED = ("fedmpi.cli.main", "fedmpi.cli.report", "fedmpi.cli.compare", "fedmpi.cli.run", "fedmpi.cli.watch",
          "fedmpi.cli.records", "fedmpi.cli.data", "fedmpi.cli.jobs_report",
          "fedmpi.cli.scaling", "fedmpi.cli.paper", "fedmpi.cli.plot",
          "fedmpi.jobs.submission", "fedmpi.datasets.smiles", "fedmpi.analysis.page.build",
          "fedmpi.reproduction.document", "numpy.ma", "glob", "rich._emoji_codes",
          "fedmpi.runs.run", "fedmpi.cli.export", "fedmpi.trained.files", "fedmpi.trained.from_run",
          "fedmpi.models.gin", "safetensors.torch", "torch.utils.serialization", "fedmpi.cli.progress", "networkx", "numba", "sklearn.cluster",
          "sklearn.linear_model", "sklearn.metrics")  # fmt: skip
"""What commands import: a child finds it loaded. MPI, which no fork outlives, is started by the child."""

WORK_SECONDS, TRAINING_SECONDS, SECONDS = 30, 60, 300
"""After so much CPU time (more where it trains), and after so long, a child counts as hanging."""

MEMORY = 1 << 30
"""Bytes of address space that a child may add to what is loaded."""

HUNG = "Timeout ("
"""How faulthandler's report of a child that took too long begins."""


@dataclass(frozen=True)
class Request:
    """A command: where and what; `call` is ``module:function`` in place of the program."""

    folder: Path
    arguments: tuple[str, ...]
    call: str
    trains: bool


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code (negative: signal), standard output and error."""

    code: int
    out: str
    err: str

    @property
    def refused(self) -> bool:
        """Whether the command refused its input, in so many words."""
        return self.code == 2


class Server:
    """The warm process, seen from the tests; close it."""

    def __init__(self) -> None:
        self._ours, theirs = Pipe()
        ones = dict.fromkeys(("FEDMPI_OFFLINE", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        environment = {**os.environ, **ones, "PYTHONPATH": str(ROOT)}
        program = "from tests.fuzz.server import main; main()"
        command = [sys.executable, "-c", program, str(theirs.fileno())]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()

    def run(self, folder: Path, *arguments: object, call: str = "", trains: bool = False) -> Ended:
        """Run ``fedmpi ARGUMENTS`` in a folder, or a function with these arguments as ``sys.argv[1:]``."""
        self._ours.send(Request(folder, tuple(map(str, arguments)), call, trains))
        ended: Ended = self._ours.recv()
        return ended

    def close(self) -> None:
        """End the process."""
        self._ours.close()
        self._process.wait()


def _serve(connection: Connection) -> Request | None:
    """Answer requests until there are no more; in a child, return the request that it is to work on."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        while True:
            try:
                request: Request = connection.recv()
            except EOFError:
                return None
            for stream in (out, err):
                stream.seek(0)
                stream.truncate()
            child = os.fork()
            if child == 0:
                os.setsid()
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                connection.close()
                return request
            _, status = os.waitpid(child, 0)
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode(errors="replace"))
            connection.send(Ended(os.waitstatus_to_exitcode(status), *texts))


def _limit(work_seconds: int) -> None:
    loaded = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (loaded + MEMORY, loaded + MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (work_seconds, work_seconds + 1))
    signal.alarm(SECONDS + 5)
    faulthandler.enable()
    faulthandler.register(signal.SIGXCPU, all_threads=False, chain=True)
    faulthandler.dump_traceback_later(SECONDS, exit=True)


def _work(request: Request) -> None:
    """Do what was asked; ends the process."""
    os.chdir(request.folder)
    sys.argv = ["fedmpi", *request.arguments]
    module, _, name = (request.call or "fedmpi.cli.main:main").partition(":")
    function = getattr(importlib.import_module(module), name)
    mpi = importlib.import_module("mpi4py.MPI")
    _limit(TRAINING_SECONDS if request.trains else WORK_SECONDS)
    if request.trains:
        mpi.Init_thread()
    try:
        code = exit_code(function)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    if request.trains:
        mpi.Finalize()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _warm_up() -> None:
    """Load what commands need, and build the tree of commands once for all children."""
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    for name in LOADED:
        importlib.import_module(name)
    importlib.import_module("fedmpi.registry.algorithms").ALGORITHMS.known()
    importlib.import_module("fedmpi.kernels.vectors").warm_up()  # loads numba's tables
    typer.main.get_command = functools.cache(typer.main.get_command)
    with suppress(SystemExit), open(os.devnull, "w") as nothing, redirect_stdout(nothing):
        importlib.import_module("fedmpi.cli.main").app(["--version"], standalone_mode=False)
    gc.freeze()


def main() -> None:
    """Be the warm process, or one of its children."""
    _warm_up()
    asked = _serve(Connection(int(sys.argv[1])))
    if asked is not None:
        _work(asked)
