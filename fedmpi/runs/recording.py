"""Recording of finished rounds: at once, or while a device trains the next one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from fedmpi.runs.observer import Observer
from fedmpi.runs.reporting import RoundReport, Rows
from fedmpi.runs.rounds import Rounds
from fedmpi.runs.run_folder import RunFolder


class Recording:
    """A context that records reports and shows them; at its end none waits.

    Where groups of clients train on a device without the host, a report waits until all of them have begun
    the next round, so that the device does not stand still for the record. Else it is recorded at once.

    Parameters
    ----------
    rounds : Rounds
        Calls `catch_up` while its device trains.
    run_folder : RunFolder
    observer : Observer
    """

    def __init__(self, rounds: Rounds, run_folder: RunFolder, observer: Observer) -> None:
        self._run_folder, self._observer = run_folder, observer
        without_host = any(group.asynchronous for group in rounds.states.groups)
        self._may_wait = without_host and not rounds.case.schedule.real  # the clock runs while a round trains
        self._waiting: RoundReport | None = None
        rounds.meanwhile = self.catch_up

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.catch_up()

    def take(self, report: RoundReport, *, at_once: bool) -> None:
        """Record a round, now or with the next call of `catch_up`."""
        assert self._waiting is None
        self._waiting = report
        if at_once or not self._may_wait:
            self.catch_up()
        else:  # the algorithm may go on with arrays of its own
            self._waiting = replace(report, results=_copied(report.results))

    def catch_up(self) -> None:
        """Record the round that waits, if one does."""
        report, self._waiting = self._waiting, None
        if report is not None:
            self._run_folder.write(report)
            self._observer.round(report)
            for line in report.notes:
                self._observer.note(line)


def _copied(rows: Rows) -> Rows:
    return {name: np.array(values) for name, values in rows.items()}
