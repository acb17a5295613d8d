"""Synchronous rounds on the real clock: a rank hands in when the devices of its clients would."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import Case
from fedmpi.client.training import TRAINING
from fedmpi.comm.world import World
from fedmpi.devices.base import slowness
from fedmpi.exchange.meter import Meter

Floats = npt.NDArray[np.float64]

_WALL = TRAINING.index("wall_s")


class Imitation:
    """Has each round take as long as if each client trained on a device of its own.

    Parameters
    ----------
    case : Case
    world : World
    meter : Meter
        Waiting is in its phase of that name, and no work.
    clients : list of int
        Those that this rank hosts.
    num_clients : int
        Of the federation.
    """

    def __init__(self, case: Case, world: World, meter: Meter, clients: list[int], num_clients: int) -> None:
        self._world, self._meter = world, meter
        devices = case.devices.make(case.seed, num_clients)
        self._slowness = slowness(devices, num_clients)[clients]
        self._start = 0.0

    def begin(self) -> None:
        """Have all ranks begin the round together (a collective call)."""
        with self._meter.phase("wait"):
            self._world.collectives.wait_for_all()
        self._start = time.perf_counter()

    def wait(self, rows: Floats) -> None:
        """Sleep until the last device of this rank's clients were through with its training.

        Clients train one after another. A device begins with its client's training, and takes as many times
        its measured seconds as it is slower than the fastest.

        Parameters
        ----------
        rows : float64 [hosted clients, columns]
            Their training reports; NaN for those that did not train.
        """
        wall = np.nan_to_num(rows[:, _WALL])
        since = wall.sum() - wall.cumsum()
        with self._meter.phase("wait"):
            time.sleep(max(0.0, float(((self._slowness - 1.0) * wall - since).max(initial=0.0))))

    def seconds(self) -> float:
        """Return the seconds since the round began."""
        return time.perf_counter() - self._start
