"""Options of a suite's data."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fedmpi.config.options import Options
from fedmpi.datasets.egos import EgoOptions
from fedmpi.datasets.features import FeatureKind, Scaling
from fedmpi.datasets.synthetic import SyntheticOptions
from fedmpi.datasets.tables import SYNTHETIC


class DatasetOptions(Options):
    """Dataset and node features.

    Attributes
    ----------
    name : str
        ``synthetic``, a group such as ``gcfl/molecules``, any TU dataset, a MoleculeNet set
        such as ``SIDER``, a network such as ``Cora``, several joined as in ``PROTEINS+DD``, or the path of an
        own folder in TU format.
    features : str
        One of `fedmpi.datasets.features.FEATURES`.
    scaling : str
        One of `fedmpi.datasets.features.Scaling`.
    targets : str
        Regression: ``raw``, as published, or ``standardised`` by mean and deviation of all training graphs.
    synthetic : SyntheticOptions
        Size of the generated domains; read for ``synthetic`` only.
    egos : EgoOptions or None
        Of a dataset whose nodes have labels: the ego-networks that take the place of its one graph.
    both_directions : bool
        Of a dataset whose edges have labels: whether each edge is an example in both directions, as in
        FedGraphNN's released code, which then trains on the other direction of most test edges.
    """

    added: ClassVar[frozenset[str]] = frozenset({"scaling", "targets", "egos", "both_directions"})

    name: str = Field(default=SYNTHETIC, min_length=1)
    features: FeatureKind = "original"
    scaling: Scaling = "none"
    targets: Literal["raw", "standardised"] = "raw"
    synthetic: SyntheticOptions = SyntheticOptions()
    egos: EgoOptions | None = None
    both_directions: bool = False
