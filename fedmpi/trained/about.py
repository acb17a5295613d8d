"""What builds a trained network again, and what its inputs and outputs mean."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fedmpi.datasets.options import Scaling
from fedmpi.datasets.raw import ExampleKind
from fedmpi.models.options import MODELS, Shape

Outputs = Literal["classes", "labels", "numbers", "relations", "prototypes", "embeddings", "other"]
"""What outputs are: logits of classes or of binary labels, numbers, scores of relations; logits beside which
prototypes decide; vectors of graphs; or what only task or algorithm can read."""

Prototypes = tuple[tuple[float, ...] | None, ...]
"""Of each class; None where no client had it."""


class About(BaseModel):
    """What is known of a trained model, beside its tensors.

    Attributes
    ----------
    suite, run, algorithm : str
        Where it was trained.
    client : str
        Whose model it is; empty for the model that all clients share.
    round : int
        Rounds that it was trained for.
    dataset : str
        Of the client, or of all.
    task : str
    features : str
        Kind of the node features, see `fedmpi.datasets.features.resolve`.
    scaling : str
        Of the features.
    feature_names : tuple of str
        Of the columns; empty where the dataset has no names for them.
    num_features, edge_features : int
        Columns of ``x``, and of the edges' attributes.
    examples : str
        What an output is of: a graph, a node or an edge.
    names : tuple of str
        Class or label of each output.
    outputs : str
        See `Outputs`.
    center, scale : tuple of float
        Numbers are ``output * scale + center``.
    prototypes : tuple of (tuple of float or None)
        FedProto's: see `Prototypes`.
    model, objective : dict
        Settings of the network, and of what it was trained by.
    plugin : dict of str to str
        SHA-256 of the files that define parts of the run.
    parameter_digest : str
        Hash of the parameter vector, as the record has it of clients that are judged by that alone.
    fedmpi_version : str
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    format: Literal[1] = 1
    suite: str
    run: str
    algorithm: str
    client: str
    round: int = Field(ge=1)
    dataset: str
    task: str
    features: str
    scaling: Scaling
    feature_names: tuple[str, ...] = ()
    num_features: int = Field(ge=1, le=10_000_000)
    edge_features: int = Field(ge=0, le=1_000_000)
    examples: ExampleKind
    names: tuple[str, ...] = Field(min_length=1)
    outputs: Outputs
    center: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    prototypes: Prototypes = ()
    model: dict[str, Any]
    objective: dict[str, Any] = {"name": "supervised"}
    plugin: dict[str, str] = {}
    parameter_digest: str = Field(pattern="^[0-9a-f]{16}$")
    fedmpi_version: str

    @model_validator(mode="after")
    def _refuse_misfits(self) -> About:
        numbers = {"numbers": (self.center, self.scale), "prototypes": (self.prototypes,)}
        if any(len(each) != len(self.names) for each in numbers.get(self.outputs, ())):
            raise ValueError(f"outputs are {self.outputs}: there must be one for each of names")
        if len({len(row) for row in self.prototypes if row is not None}) > 1:
            raise ValueError("prototypes have different lengths")
        return self

    @property
    def shape(self) -> Shape:
        """Shape of the network."""
        return Shape(self.num_features, len(self.names), self.edge_features)

    @property
    def relational(self) -> bool:
        """Whether the network reads the relation of each edge."""
        return MODELS.find(str(self.model.get("name"))).relational

    @property
    def degree_max(self) -> int | None:
        """Largest degree that has a column, where features are degrees."""
        return self.num_features - 1 if self.features == "degree" else None
