"""The order of a run by the real clock: as far as it was recorded, and as it comes about from there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from fedmpi.case.schema import Case
from fedmpi.comm.world import World
from fedmpi.errors import BadInput, Interrupted
from fedmpi.runs.rounds import Rounds
from fedmpi.runs.run_folder import RunFolder
from fedmpi.runs.signals import StopRequest
from fedmpi.schedules.recorded import Order
from fedmpi.store import arrivals


def known_order(case: Case, folder: Path, world: World, num_clients: int, recorded: int) -> Order:
    """Return the order that a run's folder has, without steps where it has none (a collective call).

    Raises
    ------
    BadInput
        On every rank: the file is damaged, or has fewer steps than the record has rounds; one rank is alone.
    """

    def read() -> Order:
        found = arrivals.load(folder, case.digest(), num_clients, recorded)
        nothing = np.zeros((0, num_clients), np.int32), np.zeros(0), np.zeros(0, np.uint64)
        order = Order(*nothing, ended=False) if found is None else Order(**found)
        if not order.ended and world.size < 2:
            raise BadInput(
                'schedule.clock = "real" needs a rank beside the server: mpiexec -n 2 fedmpi run ...'
            )
        return order

    return world.agree(read)


def go_on(
    rounds: Rounds, number: int, run_folder: RunFolder, stop: StopRequest, note: Callable[[str], None]
) -> None:
    """Have the clients train by the real clock where the order that is known ends before a round (0-based).

    Clients and server are as after the rounds before it: what was under way when a run was killed has never
    come, so that every rank begins with the present model.

    Raises
    ------
    Interrupted
        On every rank: a signal asked to stop; the steps until then are kept.
    """
    known = rounds.order
    if known is None or known.ended or len(known) != number:
        return
    note(f"the clients train by the real clock{f' from step {number + 1} on' if number else ''}")

    def kept(order: Order | None) -> Order:
        assert order is not None  # on rank 0
        run_folder.save_order(order)
        return order

    with rounds.meter.uncounted():
        came = rounds.race(known, stop, run_folder.save_order)
        order = rounds.world.agree(partial(kept, came))
    if not order.ended:
        reason = f"stopped by a signal after step {len(order)} of {rounds.case.rounds} by the real clock"
        run_folder.finish("interrupted", reason)
        raise Interrupted(f"{reason}; run the same command with --resume to continue")
    note(f"{len(order)} steps took {order.seconds.sum():.1f} s; now their scores")
    rounds.follow(order)
