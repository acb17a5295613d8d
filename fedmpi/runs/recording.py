"""Recording of finished rounds: at once, or while a device trains the next one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedmpi.runs.observer import Observer
from fedmpi.runs.reporting import RoundReport, Rows
from fedmpi.runs.rounds import Rounds
from fedmpi.runs.run_folder import RunFolder


class Recording:
    """Records reports and shows them.

    Where a device trains without the host, a report waits until the next round's work is with the device, so
    that no device stands still for the record. Else it is recorded at once.

    Parameters
    ----------
    rounds : Rounds
        Calls `catch_up` while its device trains.
    run_folder : RunFolder
    observer : Observer
    """

    def __init__(self, rounds: Rounds, run_folder: RunFolder, observer: Observer) -> None:
        self._meter, self._run_folder, self._observer = rounds.meter, run_folder, observer
        trains_alone = any(group.asynchronous for group in rounds.states.groups)
        self._may_wait = trains_alone and not rounds.case.schedule.races  # a race writes between rounds
        self._waiting: RoundReport | None = None
        rounds.meanwhile = self.catch_up

    def take(self, report: RoundReport, *, at_once: bool) -> None:
        """Record a round, now or with the next call of `catch_up`."""
        self._waiting = report
        if at_once or not self._may_wait:
            self.catch_up()
        else:  # the algorithm may go on with arrays of its own
            self._waiting = replace(report, results=_copied(report.results))

    def catch_up(self) -> None:
        """Record the round that waits, if one does."""
        report, self._waiting = self._waiting, None
        if report is None:
            return
        with self._meter.phase("record"):
            self._run_folder.write(report)
            self._observer.round(report)
            for line in report.notes:
                self._observer.note(line)


def _copied(rows: Rows) -> Rows:
    return {name: np.array(values) for name, values in rows.items()}
