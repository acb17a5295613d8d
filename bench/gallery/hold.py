"""Runs the gallery with two installations of fedmpi and says whether any result differs.

    python bench/gallery/hold.py OLD NEW [--ranks 1,3] [--suites ...] [--out DIR]

OLD and NEW are virtual environments, each with fedmpi and its MPI. Run it with the Python of NEW, whose
reader reads both records. Every client's `parameter_digest` of every round must be equal, and so must all
results that both records have. Runs that are complete are not run again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from fedmpi.errors import BadInput
from fedmpi.store import exact
from fedmpi.store.reader import Run, load_run

HERE = Path(__file__).parent
SUITES = ("synthetic", "unsupervised", "datasets")


def main() -> int:
    """Run, compare and print a line per difference; 0 if there is none."""
    options = _options()
    differing = compared = 0
    for suite in options.suites.split(","):
        folders = [
            (side, ranks, options.out.resolve() / side / f"{suite}-{ranks}")
            for ranks in options.ranks.split(",")
            for side in ("old", "new")
        ]
        for side, ranks, folder in folders:
            _run(getattr(options, side), HERE / f"{suite}.toml", ranks, folder)
        first = folders[0][2]
        for _, _, folder in folders[1:]:
            for case in sorted(path.parent.relative_to(first) for path in first.rglob("run.h5")):
                lines = _differences(first / case, folder / case)
                compared += 1
                differing += bool(lines)
                for line in lines:
                    print(f"{suite} {case}: {folder.parent.name} on {folder.name[-1]} ranks: {line}")
    print(f"{compared} pairs of runs compared, {differing} differ")
    return 1 if differing or not compared else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, help="virtual environment of the commit before")
    parser.add_argument("new", type=Path, help="virtual environment of the commit to hold against it")
    parser.add_argument("--ranks", default="1,3", help="numbers of ranks (default 1,3)")
    parser.add_argument("--suites", default=",".join(SUITES), help=f"some of {', '.join(SUITES)}")
    parser.add_argument("--out", type=Path, default=Path("results/runs/gallery-held"), help="where runs go")
    return parser.parse_args()


def _run(environment: Path, suite: Path, ranks: str, folder: Path) -> None:
    """Run what is missing of a suite."""
    programs = environment.resolve() / "bin"
    program = [programs / "python", "-P", "-m", "fedmpi"]  # a script may be missing; -P leaves out the cwd
    command = [programs / "mpiexec", "-n", ranks, *program, "run", suite.resolve()]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("w") as log:
        done = subprocess.run(
            [str(word) for word in [*command, "--out", folder, "--resume"]],
            env={**variables, "PATH": f"{programs}:{variables['PATH']}"},
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    if done.returncode:
        sys.exit(f"{suite} on {ranks} ranks ended with {done.returncode}: see {folder / 'log'}")


def _differences(first: Path, second: Path) -> list[str]:
    """Return a line for each result that differs; fields that only one record has are named once."""
    try:
        a, b = load_run(first), load_run(second)
    except BadInput as error:
        return [str(error)]
    if (a.status, a.rounds_completed, a.clients) != (b.status, b.rounds_completed, b.clients):
        return ["status, rounds or clients"]
    lines = [f"{name} is in one record only" for name in sorted(a.results.keys() ^ b.results.keys())]
    return lines + [
        line for name in sorted(a.results.keys() & b.results.keys()) for line in _where(a, b, name)
    ]


def _where(a: Run, b: Run, name: str) -> list[str]:
    left, right = a.results[name], b.results[name]
    if left.shape != right.shape:
        return [f"{name}: shape {left.shape} and {right.shape}"]
    different = exact.different(left, right)
    if not different.any():
        return []
    places = np.argwhere(different)
    return [f"{name}: {len(places)} values, first in round {int(places[0][0]) + 1}"]


if __name__ == "__main__":
    sys.exit(main())
