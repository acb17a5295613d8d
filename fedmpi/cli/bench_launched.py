"""``fedmpi bench ranks`` and ``bench start``: whole runs that mpiexec starts, measured by their records."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

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
    from fedmpi.benchmarks import cases

    if any(each.partition("=")[0] == "rounds" for each in set_ or []):
        raise BadInput("--set rounds: bench ranks has --rounds for it")
    changes = [*(set_ or []), f"rounds={rounds}"]
    checked = cases.choose(suite, changes)
    wanted = rank_numbers(numbers, "--ranks")
    if len(wanted) < 2 or len(set(wanted)) < len(wanted):
        raise BadInput(f"--ranks {numbers}: give different numbers of ranks, two at least")
    _refuse_many(max(wanted))
    checkout = alone("ranks", checked.case.threads)
    from fedmpi.benchmarks.ranks import measure

    command = _command(suite, changes, data)
    report = measure(command, wanted, repetitions, warmup, lambda text: say(text, sys.stderr))
    return finish(report, as_json, checkout, {"threads": checked.case.threads})


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
    from fedmpi.benchmarks import cases

    _refuse_many(ranks)
    changes = [*(set_ or []), "rounds=1"]
    checked = cases.choose(suite, changes)
    checkout = alone("start", checked.case.threads)
    from fedmpi.benchmarks.start import measure

    command = _command(suite, changes, data)
    report = measure(command, ranks, repetitions, warmup, lambda text: say(text, sys.stderr))
    return finish(report, as_json, checkout, {"threads": checked.case.threads})


def _refuse_many(ranks: int) -> None:
    most = _RANKS_PER_CORE * launch.available_cores()
    if ranks > most:
        raise BadInput(f"--ranks {ranks}: at most {most} on the cores that this process may use")


def _command(suite: str | None, changes: Sequence[str], data: Data) -> list[str]:
    """Return the run of a suite's one case, without ``--out``."""
    from fedmpi.benchmarks import cases

    command = ["run", suite or cases.DEFAULT]
    for change in cases.changes(suite, changes):
        command += ["--set", change]
    for flag, place in (("--mirror", data.mirror), ("--data", data.data)):
        command += [flag, str(place)] if place is not None else []
    return [*command, *(["--offline"] if data.offline else [])]
