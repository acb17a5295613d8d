"""Names of the node features that a suite may ask for, and of what is done to them."""

from __future__ import annotations

from typing import Literal, get_args

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
