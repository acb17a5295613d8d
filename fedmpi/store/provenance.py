"""Provenance of a result: source, versions, machine, environment; without secrets."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import fedmpi

PACKAGES = (
    "fedmpi", "numpy", "scipy", "torch", "torch-geometric", "mpi4py", "h5py", "networkx", "tslearn",
    "scikit-learn", "numba", "pydantic",
)  # fmt: skip
_MODULES = {"torch-geometric": "torch_geometric", "scikit-learn": "sklearn"}
"""Of packages that are not imported by their name."""

_PREFIXES = (
    "SLURM_", "OMPI_", "MPI", "PMI", "PRTE_", "OMP_", "KMP_", "MKL_", "OPENBLAS_", "UCX_", "FI_",
    "APPTAINER_", "SINGULARITY_",
)  # fmt: skip
_NAMES = {
    "HDF5_USE_FILE_LOCKING", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
    "LOADEDMODULES",
}  # fmt: skip
_SECRET = re.compile(
    r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL|JWT|AUTH|COOKIE|BEARER|CERT|PRIVATE|://[^/\s]*@", re.IGNORECASE
)
_DROPPED = "(dropped)"


def collect(
    extra: Mapping[str, Any] | None = None, checkout: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the provenance of this process as JSON values.

    Parameters
    ----------
    extra : mapping, optional
        What only the caller knows (MPI library, hosts of the ranks, device), added at the top level.
    checkout : mapping, optional
        What `checkout_state` returned before MPI started; asked for now where it is not given.
    """
    return {
        "source": checkout_state() if checkout is None else dict(checkout),
        "packages": packages(),
        "python": sys.version,
        "executable": sys.executable,
        "platform": platform.platform(),
        "host": socket.gethostname(),
        **machine(),
        "command": [_DROPPED if _SECRET.search(part) else part for part in sys.argv],
        "environment": environment(os.environ),
        **(extra or {}),
    }


def checkout_state() -> dict[str, Any]:
    """Return `source` of the imported fedmpi; it starts `git`, so call it before MPI."""
    return source(Path(fedmpi.__file__).parent)


def source(package: Path) -> dict[str, Any]:
    """Return git commit and state of the checkout that `package` belongs to; empty if it is none."""
    tracked = _git(package, "ls-files", "--error-unmatch", "__init__.py")
    commit = _git(package, "rev-parse", "HEAD")
    if tracked is None or commit is None:
        return {}
    changed = _git(package, "status", "--porcelain", "--untracked-files=no")
    added = _git(package, "ls-files", "--others", "--exclude-standard", "--", str(package))
    found: dict[str, Any] = {"commit": commit.decode().strip(), "dirty": bool(changed or added)}
    if found["dirty"]:
        found["diff_sha256"] = hashlib.sha256(_git(package, "diff", "HEAD") or b"").hexdigest()
    return found


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return what git prints; None if it is missing, fails or takes more than 10 s."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=True,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def packages() -> dict[str, dict[str, str]]:
    """Return version and place of each package of interest that is imported already."""
    found: dict[str, dict[str, str]] = {}
    for distribution in PACKAGES:
        module = sys.modules.get(_MODULES.get(distribution, distribution))
        if module is not None:
            version = getattr(module, "__version__", None) or _installed_version(distribution)
            found[distribution] = {"version": str(version), "path": str(module.__file__)}
    return found


def _installed_version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of scheduler, MPI, threads and libraries, without any that looks secret."""
    return {
        name: value
        for name, value in sorted(variables.items())
        if (name in _NAMES or name.startswith(_PREFIXES)) and not _SECRET.search(f"{name}={value}")
    }


def machine() -> dict[str, Any]:
    """Return processor model, cores, the cores this process may use, and memory in bytes."""
    return {
        "cpu_model": _proc_line("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "affinity": sorted(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def _proc_line(path: str, key: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith(key)), "")
    except OSError:
        return ""
