"""``fedmpi bench ranks`` and ``bench start``: whole runs that mpiexec starts, measured by their records."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fedmpi.benchmarks import cases
from fedmpi.cli.bench import OneCase, Repetitions, Warmup, alone, finish
from fedmpi.cli.options import Data, Json, Set
from fedmpi.cli.scaling import rank_numbers
from fedmpi.cli.terminal import say
from fedmpi.comm import launch
from fedmpi.errors import BadInput

_RANKS_PER_CORE = 32
"""More ranks on a core measure the system's scheduler alone."""


def ranks(
    data: Data,
    suite: OneCase = None,
    set_: Set = None,
    numbers: Annotated[
        str, typer.Option("--ranks", help="Numbers of ranks, with commas; the first is compared with.")
    ] = "2,3",
    rounds: Annotated[int, typer.Option(min=3, help="Rounds of each run; the first is not counted.")] = 30,
    repetitions: Annotated[int, typer.Option(min=1, help="Measured turns; all are kept.")] = 7,
    warmup: Annotated[int, typer.Option(min=0, help="Turns before, not measured.")] = 1,
    as_json: Json = False,
) -> int:
    """Time the same run on several numbers of ranks in turn, each started by mpiexec.

    Examples
    --------
    fedmpi bench ranks
    """
    if any(each.partition("=")[0] == "rounds" for each in set_ or []):
        raise BadInput("--set rounds: bench ranks has --rounds for it")
    wanted = rank_numbers(numbers, "--ranks")
    if len(wanted) < 2 or len(set(wanted)) < len(wanted):
        raise BadInput(f"--ranks {numbers}: give different numbers of ranks, two at least")
    changes = [*(set_ or []), f"rounds={rounds}"]
    command, threads, checkout = _prepared("ranks", suite, changes, data, max(wanted))
    from fedmpi.benchmarks.ranks import measure

    report = measure(command, wanted, repetitions, warmup, _told)
    return finish(report, as_json, checkout, {"threads": threads})


def start(
    data: Data,
    suite: OneCase = None,
    set_: Set = None,
    ranks: Annotated[int, typer.Option(min=1, help="MPI ranks of the run.")] = 2,
    repetitions: Repetitions = 7,
    warmup: Warmup = 1,
    as_json: Json = False,
) -> int:
    """Measure each rank's CPU time from the command to the first round, beside that of importing torch.

    Examples
    --------
    fedmpi bench start --set algorithm=gcfl-plus
    """
    command, threads, checkout = _prepared("start", suite, [*(set_ or []), "rounds=1"], data, ranks)
    from fedmpi.benchmarks.start import measure

    report = measure(command, ranks, repetitions, warmup, _told)
    return finish(report, as_json, checkout, {"threads": threads})


def _told(text: str) -> None:
    say(text, sys.stderr)


def _prepared(
    name: str, suite: str | None, changes: Sequence[str], data: Data, ranks: int
) -> tuple[list[str], int, dict[str, Any]]:
    """Return the run of a suite's one case, without ``--out``, its threads and the state of the source."""
    most = _RANKS_PER_CORE * launch.available_cores()
    if ranks > most:
        raise BadInput(f"--ranks {ranks}: at most {most} on the cores that this process may use")
    threads = cases.choose(suite, changes).case.threads
    checkout = alone(name, threads)
    from fedmpi.benchmarks.whole_runs import command_of

    places = {"mirror": data.mirror, "data": data.data}
    changes = cases.changes(suite, changes)
    command = command_of(suite or cases.DEFAULT, changes, **places, offline=bool(data.offline))
    return command, threads, checkout
