"""Options of the models (imports without torch)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from fedmpi.config.options import Options


@dataclass(frozen=True)
class Shape:
    """Input width and number of outputs of a client's model."""

    width: int
    classes: int


class NetworkOptions(Options):
    """What all models have.

    ``head`` sizes the last layer by the dataset's classes or, as the released
    GCFL code does, by the labels that occur in the client's own training split.
    """

    name: str
    hidden: int = Field(64, ge=1, le=4096)
    layers: int = Field(3, ge=1, le=16)
    dropout: float = Field(0.5, ge=0, lt=1)
    head: Literal["dataset", "own"] = "dataset"

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model; all can be run client by client by torch."""
        return frozenset({"csr", "reference"})


class GinOptions(NetworkOptions):
    """GIN as in GCFL: Linear, `layers` GIN convolutions, sum pooling, a head of two Linears."""

    name: Literal["gin"] = "gin"

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model."""
        return frozenset({"compiled", "grouped", "csr", "reference"})


ModelOptions = GinOptions
"""Options of any model: with the second model, a union told apart by `name`."""

MODELS: dict[str, type[BaseModel]] = {"gin": GinOptions}
"""Option classes by name; `fedmpi.models.networks` and `fedmpi.models.flops` have a line for each."""
