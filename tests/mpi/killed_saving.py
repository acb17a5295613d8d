"""One case whose third checkpoint ends in a kill: ``python killed_saving.py SUITE OUT RANK WHEN``.

RANK kills itself (SIGKILL) ``before`` or ``after`` it has written its file of the checkpoint, in its ``middle``, or,
as rank 0, ``between`` the manifest's two renames. A RANK of -1 kills nobody.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

gc.set_threshold(100_000, 20, 20)  # as the command line does: imports leave no garbage

from fedmpi.comm import launch  # noqa: E402

launch.set_defaults(1)

from fedmpi.cli.options import Data  # noqa: E402
from fedmpi.cli.plan import check_places, plan_suite  # noqa: E402
from fedmpi.comm.world import World, abort  # noqa: E402
from fedmpi.config.suite import read  # noqa: E402
from fedmpi.runs.checkpoints import Checkpoints  # noqa: E402
from fedmpi.runs.run import Job, run  # noqa: E402
from fedmpi.runs.signals import StopRequest  # noqa: E402
from fedmpi.store import checkpoint  # noqa: E402

sys.path.append(str(Path(__file__).parent.parent.parent))
from tests.mpi.session import Silent  # noqa: E402

FATAL = 3


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(when: str) -> None:
    """Have this rank kill itself in its third checkpoint."""
    write_states, write_sealed, replace = Checkpoints.write_states, checkpoint._write_sealed, os.replace
    reached = []

    def armed(self, finished, states):
        if finished == FATAL:
            reached.append(finished)
            if when == "before":
                die()
        digest = write_states(self, finished, states)
        if finished == FATAL and when == "after":
            die()
        return digest

    def half(file, arrays):
        if reached and when == "middle":
            file.write(b"half of a file")
            file.flush()
            die()
        return write_sealed(file, arrays)

    def once(source, target):
        replace(source, target)
        if reached and when == "between" and str(target).endswith("manifest.previous"):
            die()

    Checkpoints.write_states, checkpoint._write_sealed, os.replace = armed, half, once


def main(suite: str, out: str, rank: str, when: str) -> None:
    """Run the suite's only case."""
    world = World()
    source = Data().source()
    plan = plan_suite(read(Path(suite), []), Path(out), resume=True)
    check_places(plan, source)
    (planned,) = plan
    if world.rank == int(rank):
        arm(when)
    checked = planned.checked
    run(
        Job(checked.case, checked.algorithm, planned.folder, source, True, {}), world, Silent(), StopRequest()
    )


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BaseException as error:
        abort(error)
