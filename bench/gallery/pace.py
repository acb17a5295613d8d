"""Times rounds of one case with two installations of fedmpi, in turn, and prints the ratios of the pairs.

    python bench/gallery/pace.py OLD NEW [SUITE] [--set KEY=VALUE ...] [--new-set KEY=VALUE ...] [--pairs 30]

OLD and NEW are virtual environments, each with fedmpi; one given twice compares settings by `--new-set`. Two
processes, one of each, stay alive and run whole rounds one after the other: a machine whose speed drifts
drifts for both. Rounds are those of one rank.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

WARMUP = 3


def main() -> int:
    """Print medians of both sides and the quartiles of the pairs' ratios, by wall and CPU clock."""
    options = _options()
    words = [options.suite, *options.set]
    sides = [_Side(options.old, words), _Side(options.new, words + options.new_set)]
    pairs = []
    for number in range(-WARMUP, options.pairs):
        first = number % 2  # who begins takes turns, too
        seconds = {side: sides[side].round() for side in (first, 1 - first)}
        pairs += [(seconds[0], seconds[1])] if number >= 0 else []
    for side in sides:
        side.end()
    print(f"{' '.join(words)}, new {' '.join(options.new_set) or 'the same'}, {len(pairs)} pairs")
    for number, clock in enumerate(("wall", "CPU")):
        timed = [(old[number], new[number]) for old, new in pairs]
        old, new = (statistics.median(side) for side in zip(*timed, strict=True))
        low, middle, high = statistics.quantiles([after / before for before, after in timed], n=4)
        print(f"{clock}: old {1e3 * old:.1f} ms, new {1e3 * new:.1f} ms a round,", end=" ")
        print(f"new / old {middle:.3f} (quartiles {low:.3f} to {high:.3f})")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, help="virtual environment of the commit before")
    parser.add_argument("new", type=Path, help="virtual environment of the commit to time against it")
    parser.add_argument("suite", nargs="?", default="gcfl/proteins", help="default gcfl/proteins")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as of fedmpi run")
    parser.add_argument(
        "--new-set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of NEW alone: keys that --set leaves out",
    )
    parser.add_argument("--pairs", type=int, default=30, help="pairs of rounds (default 30)")
    return parser.parse_args()


class _Side:
    """A process of one installation, which runs a round for each line that it reads."""

    def __init__(self, environment: Path, words: list[str]) -> None:
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [environment.resolve() / "bin" / "python", "-P", "-c", _CHILD, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables,
        )  # fmt: skip

    def round(self) -> tuple[float, ...]:
        """Return wall and CPU seconds of the next round."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self._process.args[0]} ended with {self._process.wait()}")
        return tuple(map(float, line.split()))

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


_CHILD = """
import os, sys, time
import numpy as np
from fedmpi.benchmarks import cases
checked = cases.choose(sys.argv[1], sys.argv[2:])
from fedmpi.benchmarks.federation import StopRequest, deterministic, prepare
from fedmpi.cli.options import Data
from fedmpi.comm.world import World
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
prepared, number = prepare(checked, Data().source(), World()), 0
with deterministic(True), np.errstate(all="ignore"):
    for _ in sys.stdin:
        begun = time.perf_counter(), time.process_time()
        prepared.rounds.run(number, stop=StopRequest(), checkpoint=False)
        ended = time.perf_counter(), time.process_time()
        print(*(b - a for a, b in zip(begun, ended)), file=answers, flush=True)
        number += 1
"""

if __name__ == "__main__":
    sys.exit(main())
