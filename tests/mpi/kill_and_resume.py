"""Kill a run with SIGKILL at random moments, resume it on other rank counts, compare the end.

``python -m tests.mpi.kill_and_resume [--kills 10] [--suite S] [--set KEY=VALUE ...] [--mpi mpich]``

An undisturbed run is made first. Then the same case is started again and again,
on 1, 2, 3, 4, 1, ... ranks, and its whole process group is killed at a random
moment of its start or of its rounds; a last life on 4 ranks finishes it.
The two records must be identical. Prints the counts.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from fedmpi.store.identical import compare
from fedmpi.store.reader import load_run
from tests.mpi.launcher import Mpi, end, find

_SUITE = Path(__file__).parent / "suite.toml"


def rounds_of(folder: Path) -> int:
    """Return the rounds in the event log, finished or being computed again."""
    try:
        return (folder / "events.jsonl").read_bytes().count(b'"event": "round"')
    except OSError:
        return 0


def kill_at_random(mpi: Mpi, ranks: int, command: list[str], root: Path, torn: Path, most: int) -> None:
    """Start a life and kill it at a random moment: while it starts, or in one of its first `most` rounds."""
    process = mpi.start(ranks, *command, cwd=root)
    begun = rounds_of(torn)
    target = begun + random.randint(0, most)
    while rounds_of(torn) < target:
        if process.poll() is not None:
            raise SystemExit(f"a life ended before it was killed:\n{process.communicate()[0]}")
        time.sleep(0.002)
    time.sleep(random.uniform(0.0, 4.0 if target == begun else 0.1))
    end(process)
    process.communicate()


def main() -> None:
    """Run the experiment and exit with 0 only if the records are identical."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--suite", default=str(_SUITE))
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--mpi", default="mpich", choices=["mpich", "openmpi"])
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    random.seed(options.seed)
    mpi = find(options.mpi)
    with tempfile.TemporaryDirectory() as place:
        experiment(mpi, options.suite, options.set, options.kills, Path(place))


def experiment(mpi: Mpi, suite: str, settings: list[str], kills: int, root: Path) -> None:
    """Do what the module says for case 0 of the suite below `root`; raise SystemExit if records differ."""
    options = [part for setting in settings for part in ("--set", setting)]
    command = ["-m", "fedmpi", "run", suite, "--case", "0", *options]
    code, output = mpi.run(3, *command, "--out", "whole", cwd=root, timeout=1800)
    if code != 0:
        raise SystemExit(output)
    (whole,) = (root / "whole").iterdir()
    torn, most = root / "torn" / whole.name, load_run(whole).rounds // kills
    for number in range(kills):
        ranks = number % 4 + 1
        kill_at_random(mpi, ranks, [*command, "--out", "torn", "--resume"], root, torn, most)
        print(f"kill {number + 1}: {ranks} ranks, {rounds_of(torn)} rounds in the event log", flush=True)
    code, output = mpi.run(4, *command, "--out", "torn", "--resume", cwd=root, timeout=1800)
    if code != 0:
        raise SystemExit(output)
    verdict, lives = compare(whole, torn), len(load_run(torn).lives)
    if verdict.differences:
        raise SystemExit("\n".join(["the records differ:", *verdict.differences]))
    print(
        f"{kills} kills with SIGKILL, {lives} lives in the record, {verdict.rounds} rounds, "
        f"{verdict.datasets} result datasets: identical to the undisturbed run"
    )


if __name__ == "__main__":
    main()
