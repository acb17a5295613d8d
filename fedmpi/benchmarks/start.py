"""CPU time of a run from its start to the first round, in turn with a process that imports torch alone."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Sequence

from fedmpi.benchmarks.samples import Measurement, Report, Samples, in_turn
from fedmpi.benchmarks.whole_runs import attempt_of


def measure(
    command: Sequence[str],
    ranks: int,
    repetitions: int,
    warmup: int,
    heard: Callable[[str], None] = lambda text: None,
) -> Report:
    """Start a run of one round and a process that imports torch, in turn.

    Parameters
    ----------
    command : sequence of str
        The run, without ``--out``.
    ranks : int
        MPI ranks of the run.
    repetitions, warmup : int
        Turns that are measured, and turns before: the first compiles kernels.
    heard : callable, optional
        Told of every turn before it starts.

    Returns
    -------
    Report
        Per rank the CPU time before its first round, and what of it is not the import of torch.
    """

    def seconds(turn: int) -> list[float]:
        """Return the CPU time of importing torch and of each rank before its first round."""
        heard(f"turn {turn + 1} of {warmup + repetitions}")
        torch = _import_of_torch()
        places = attempt_of(command, ranks, "bench start").provenance["mpi"]["ranks"]
        return [torch, *(place["cpu_seconds"] for place in places)]

    (turns,) = in_turn({"start": seconds}, warmup, repetitions).values()
    torch, *starts = (Samples.of("s", each) for each in zip(*turns, strict=True))
    measurements, results = [Measurement({"process": "import torch"}, {"cpu": torch})], {}
    for rank, own in enumerate(starts):
        beyond = Samples.of("s", (a - b for a, b in zip(own.values, torch.values, strict=True)))
        measurements.append(Measurement({"process": f"rank {rank}"}, {"cpu": own, "beyond_torch": beyond}))
        results[f"rank {rank}"] = beyond.median
    settings = {"command": list(command), "ranks": ranks, "repetitions": repetitions, "warmup": warmup}
    slowest = max(results.values())
    statement = f"{slowest:.2f} s of CPU time from the command to the first round, beyond the import of torch"
    return Report("start", settings, measurements, {"beyond_torch": results}, [statement])


def _import_of_torch() -> float:
    before = _children()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
