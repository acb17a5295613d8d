"""Citation networks with the split of Planetoid."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from fedmpi.datasets import planetoid
from fedmpi.datasets.network_family import NetworkFamily
from fedmpi.datasets.raw import RawGraphs
from fedmpi.datasets.tables import DatasetFacts

# fmt: off
_FACTS = (
    DatasetFacts(
        "Cora", 1, 7, 0, 1433, 168, 2708, 10556,
        "7f6e86264b83e872f759b0f1756a067ca77dc20f6ff8c1564721759bfdf44d61",
    ),
    DatasetFacts(
        "CiteSeer", 1, 6, 0, 3703, 99, 3327, 9104,
        "610613be50981a41ff3fa2387491877bec27a9849b62eb189b0d7b6a1f884077",
    ),
    DatasetFacts("PubMed", 1, 3, 0, 500, 171, 19717, 88648, ""),
)
# fmt: on


class Planetoid(NetworkFamily):
    """Seven files each."""

    name: ClassVar[str] = "planetoid"
    title: ClassVar[str] = "Planetoid: citation networks, node classification"
    facts: ClassVar[Mapping[str, DatasetFacts]] = {each.name: each for each in _FACTS}
    names: ClassVar[Collection[str]] = tuple(facts)
    upstream: ClassVar[str] = "https://github.com/kimiyoung/planetoid/raw/master/data"

    def files(self, name: str) -> tuple[str, ...]:
        """Return the names of the files."""
        return tuple(planetoid.file_of(name, part) for part in planetoid.PARTS)

    def read(self, path: Path | None, name: str) -> RawGraphs:
        """Read the files; see `fedmpi.datasets.planetoid.read_network`."""
        assert path is not None
        return planetoid.read_network(path, self.facts[name])
