"""How far a running job is, from the events that it logs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fedmpi.analysis.cells import grouped
from fedmpi.analysis.summary import method, setting
from fedmpi.metrics import clients
from fedmpi.metrics.metric import Metric
from fedmpi.store.events import Attempt, Event, Round, Start, Status
from fedmpi.store.schema import Array

_RECENT = 20
"""Rounds that the present rate is the median of."""


class RunProgress:
    """What is known of a run so far; an attempt that computes rounds again replaces them.

    Attributes
    ----------
    status, reason : str
        As the log says: "waiting" before its first line.
    attempts, ranks : int
        Number of starts, and ranks of the last one.
    current : int
        Rounds finished in the order of the log: falls back when an attempt begins at an earlier round.
    """

    def __init__(self) -> None:
        self._begin(None)

    def _begin(self, start: Start | None) -> None:
        self.start = start
        self.status, self.reason = "waiting" if start is None else "running", ""
        self.attempts = self.ranks = self.current = self._first = 0
        self.last_time = "" if start is None else start.time
        self._rounds: dict[int, Round] = {}
        self._recent: list[float] = []

    def apply(self, events: Iterable[Event]) -> list[Round]:
        """Take new events; return the rounds among them."""
        rounds = []
        for event in events:
            self.last_time = event.time
            match event:
                case Start():
                    self._begin(event)
                case Attempt():
                    self.attempts, self.ranks = self.attempts + 1, event.ranks
                    self.status, self.reason, self._recent = "running", "", []
                    self._first = self.current = event.first_round
                case Round():
                    self._rounds[event.round] = event
                    first_is_last = self.current == self._first + 1
                    self.current = event.round + 1
                    # An attempt's first round may be longer: FedSage+'s has the phase before it.
                    recent = [] if first_is_last else self._recent
                    self._recent = [*recent, float(event.measurements["round_seconds"])][-_RECENT:]
                    rounds.append(event)
                case Status():
                    self.status, self.reason = event.status, event.reason
        return rounds

    @property
    def config(self) -> dict[str, Any]:
        """The configuration; empty before the first line."""
        return self.start.config if self.start is not None else {}

    @property
    def title(self) -> str:
        """Suite and case, algorithm and dataset, in a line."""
        config = self.config
        named = f"{config.get('suite', '')}/{config.get('name', '')}".strip("/")
        return f"{named}: {method(config)} on {setting(config, 'dataset')}"

    @property
    def planned(self) -> int:
        """Rounds of the whole run."""
        return self.start.rounds if self.start else 0

    @property
    def clients(self) -> tuple[str, ...]:
        """Names of the clients."""
        return self.start.clients if self.start is not None else ()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the run, the headline first; none before the first line."""
        return self.start.metrics if self.start is not None else ()

    @property
    def seconds(self) -> float:
        """Seconds of all recorded rounds."""
        return float(sum(float(each.measurements["round_seconds"]) for each in self._rounds.values()))

    @property
    def seconds_per_round(self) -> float:
        """Median over the last rounds of this attempt; NaN before there is one."""
        return float(np.median(self._recent)) if self._recent else math.nan

    @property
    def seconds_left(self) -> float:
        """Estimate of what is left, at the present rate; NaN where there is none."""
        return (self.planned - self.current) * self.seconds_per_round

    def history(self, name: str) -> Array:
        """Return a result of all recorded rounds in order [R, clients]."""
        rows = [self._rounds[number].results[name] for number in sorted(self._rounds)]
        return np.array(rows) if rows else np.zeros((0, len(self.clients)))

    def curve(self, name: str) -> Array:
        """Return a result by round [R], its mean over clients; NaN where none was evaluated."""
        return clients.mean_by_round(np.asarray(self.history(name), np.float64))

    def clusters(self) -> list[list[str]]:
        """Return the clients of each present cluster, the largest first; empty before the first round."""
        history = self.history("group")
        if not len(history):
            return []
        by_cluster = grouped(range(len(self.clients)), lambda place: history[-1, place])
        found = [[self.clients[place] for place in places] for places in by_cluster.values()]
        return sorted(found, key=len, reverse=True)
