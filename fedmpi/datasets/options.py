"""Options of a suite's data."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from pydantic import Field

from fedmpi.config.options import Options
from fedmpi.datasets.egos import EgoOptions
from fedmpi.datasets.synthetic import SyntheticOptions
from fedmpi.datasets.tables import SYNTHETIC

FeatureKind = Literal[
    "original",
    "labels",
    "attributes",
    "labels+attributes",
    "degree",
    "constant",
    "identity",
    "scalar8",
    "onehot",
]
FEATURES: tuple[str, ...] = get_args(FeatureKind)

Scaling = Literal["none", "row-sum", "per-graph"]
"""What is done to the features: nothing, each node's divided by their sum, or standardised in each graph."""


class DatasetOptions(Options):
    """Dataset and node features."""

    added: ClassVar[frozenset[str]] = frozenset({"scaling", "targets", "egos", "both_directions"})

    name: str = Field(default=SYNTHETIC, min_length=1)
    """A dataset, a group such as "gcfl/molecules", several joined as in "PROTEINS+DD", or the path of a
    folder in TU format, table of molecules or graphs of one's own; `fedmpi data list` shows those known."""
    features: FeatureKind = "original"
    """Of the nodes; "original": those that the dataset has, one-hot degrees where it has none."""
    scaling: Scaling = "none"
    """Of the features: divided by each node's sum ("row-sum"), or standardised in each graph."""
    targets: Literal["raw", "standardised"] = "raw"
    """Numbers to predict: as published, or by mean and deviation of all training graphs."""
    synthetic: SyntheticOptions = SyntheticOptions()
    """Size of the generated domains; for "synthetic" only."""
    egos: EgoOptions | None = None
    """Of a dataset whose nodes have labels: the ego-networks that take the place of its one graph."""
    both_directions: bool = False
    """Of a dataset whose edges have labels: whether each edge is an example in both directions, as in
    FedGraphNN's released code, which then trains on the other direction of most test edges."""
