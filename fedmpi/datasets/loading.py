"""The datasets of a case, in member order."""

from __future__ import annotations

from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.synthetic import generate
from fedmpi.datasets.tables import SYNTHETIC


def load_all(options: DatasetOptions, source: DataSource) -> tuple[RawGraphs, ...]:
    """Return every dataset behind the options' name: group members in order, or one per generated domain.

    Raises
    ------
    BadInput
        A dataset is not prepared (`DataSource.prepare` does that, once per machine).
    """
    if options.name == SYNTHETIC:
        return tuple(generate(options.synthetic, domain) for domain in range(options.synthetic.domains))
    return tuple(source.load(member) for member in source.members(options.name))
