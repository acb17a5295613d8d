"""The generated domains, which need no files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedmpi.datasets.family import Family
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.synthetic import generate, num_labels
from fedmpi.datasets.tables import SYNTHETIC, DatasetFacts

if TYPE_CHECKING:
    from fedmpi.datasets.options import DatasetOptions

_DEGREE = 4
"""Directed edges per node of a graph, near enough for an estimate."""


class Synthetic(Family):
    """Generated graphs: one dataset for each domain that the options ask for."""

    name = "synthetic"
    names = (SYNTHETIC,)
    prepared = False
    edge_attributes = False

    def count(self, options: DatasetOptions) -> int:
        """Return the number of domains."""
        return options.synthetic.domains

    def sizes(self, options: DatasetOptions) -> list[DatasetFacts]:
        """Return about the sizes of each domain; classes and label widths are exact."""
        asked = options.synthetic
        nodes = asked.graphs * sum(asked.nodes) // 2
        return [
            DatasetFacts(
                *(f"{SYNTHETIC}-{domain}", asked.graphs, asked.classes, num_labels(domain), 0, None),
                *(nodes, _DEGREE * nodes),
            )
            for domain in range(asked.domains)
        ]

    def generate(self, options: DatasetOptions) -> tuple[RawGraphs, ...]:
        """Return every domain."""
        return tuple(generate(options.synthetic, domain) for domain in range(options.synthetic.domains))
