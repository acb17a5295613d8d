"""What a front end gives a run to call."""

from __future__ import annotations

from typing import Any, Protocol

from fedmpi.case.schema import Case
from fedmpi.metrics.metric import Metric
from fedmpi.partition.table import PartitionTable
from fedmpi.runs.reporting import RoundReport
from fedmpi.runs.run_folder import Opening


class Observer(Protocol):
    """Callbacks of a front end; called on rank 0 only."""

    def begin(
        self,
        case: Case,
        metrics: tuple[Metric, ...],
        table: PartitionTable,
        opening: Opening,
        facts: dict[str, Any],
    ) -> None:
        """Show what is known before the first round: data, partition and record are ready.

        Parameters
        ----------
        case : Case
        metrics : tuple of Metric
            By which the run is judged; the headline first.
        table : PartitionTable
            Clients with their numbers of graphs.
        opening : Opening
            The first round to compute, and how the run folder was opened.
        facts : dict
            Machine, placement of clients and datasets, as the provenance records them.
        """

    def round(self, report: RoundReport) -> None:
        """Show a recorded round."""

    def note(self, text: str) -> None:
        """Show a line to the user."""
