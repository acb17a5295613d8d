"""The program, with one case that can be struck: ``struck.py CASE MOMENT RANK ARGUMENTS...``; for storm.py.

RANK kills itself (SIGKILL) in the case's third checkpoint: ``before`` or ``after`` it has written its file, in its
``middle``, or, as rank 0, ``between`` the manifest's two renames. ``held``, ``race``: nobody does, but from the third
round on clients train slowly, so that a signal comes in that round, or before a race has ended. Any other MOMENT leaves the program as it is.
"""

import os
import signal
import sys
import time

from fedmpi.comm import launch

launch.set_defaults(1)

from fedmpi.__main__ import main  # noqa: E402

THIRD = 3


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def hold(name):
    """Have each client take 0.3 s longer from the third round on."""
    from fedmpi.client.client import Client

    train = Client.train_locally

    def slowly(self, case, algorithm, round):
        if case.name == name and round + 1 >= THIRD:
            time.sleep(0.3)
        return train(self, case, algorithm, round)

    Client.train_locally = slowly


def arm(name, when):
    """Have this rank kill itself in the third checkpoint."""
    from fedmpi.runs.checkpoints import Checkpoints
    from fedmpi.store import checkpoint

    write_states, write_sealed, replace = Checkpoints.write_states, checkpoint._write_sealed, os.replace
    reached = []

    def armed(self, finished, states):
        if finished == THIRD and self._folder.parent.name == name:
            reached.append(finished)
        if reached and when == "before":
            die()
        digest = write_states(self, finished, states)
        if reached and when == "after":
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


if __name__ == "__main__":
    case, moment, rank, *sys.argv[1:] = sys.argv[1:]
    if moment in ("held", "race"):
        hold(case)
    elif moment in ("before", "middle", "after", "between") and rank == str(launch.rank()):
        arm(case, moment)
    main()
