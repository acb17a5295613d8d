"""Options of the models (imports without torch)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field, model_validator

from fedmpi.config.options import Options


@dataclass(frozen=True)
class Shape:
    """Input width and number of outputs of a client's model, and the width of its edges' attributes."""

    width: int
    classes: int
    edges: int = 0


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

    any_task: ClassVar[bool] = False
    """Whether the fast kernels train the model on several labels and on numbers, too, not on classes only."""

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model; all can be run client by client by torch."""
        return frozenset({"csr", "reference"})

    @property
    def norms(self) -> tuple[str, ...]:
        """Names of the normalisation layers after each convolution, in order."""
        return ()


class GinOptions(NetworkOptions):
    """GIN as in GCFL: Linear, `layers` GIN convolutions, sum pooling, a head of two Linears."""

    name: Literal["gin"] = "gin"
    norm: Literal["none", "batch", "layer", "graph", "batch+graph"] = "none"
    """Normalisation between a convolution and its activation. GraphNorm is FedCCH's personalised factor:
    it stays with the client unless the algorithm says ``pf = "shared"``."""

    added: ClassVar[frozenset[str]] = frozenset({"norm"})

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model."""
        plain = frozenset({"csr", "reference"})
        return plain | ({"compiled", "grouped"} if self.norm == "none" else {"compiled"})

    @property
    def norms(self) -> tuple[str, ...]:
        """Names of the normalisation layers after each convolution, in order."""
        return () if self.norm == "none" else tuple(self.norm.split("+"))


class FedStarOptions(NetworkOptions):
    """FedStar's two channels: a GIN on features and structure, a GCN on structure encodings.

    Attributes
    ----------
    walks, degrees : int
        Columns of the structure encoding, see `fedmpi.graphs.encodings`.
    """

    name: Literal["fedstar"] = "fedstar"
    walks: int = Field(16, ge=1, le=64)
    degrees: int = Field(16, ge=1, le=1024)

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model."""
        return frozenset({"compiled", "csr", "reference"})

    @property
    def encoding(self) -> int:
        """Width of the structure encoding."""
        return self.walks + self.degrees


class MessagePassingOptions(NetworkOptions):
    """Linear, `layers` convolutions of torch-geometric with ReLU and dropout, pooling, a head.

    Attributes
    ----------
    pooling : str
        Of the nodes of a graph: ``mean`` or ``sum``.
    head_layers : int
        Linears of the head; with 1 it is the output alone.
    """

    name: Literal["gcn", "gat", "sage", "sgc", "mpnn"]
    pooling: Literal["mean", "sum"] = "mean"
    head_layers: Literal[1, 2] = 2

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model; the compiled ones have a head of two layers."""
        plain = frozenset({"csr", "reference"})
        return plain | {"compiled"} if self.head_layers == 2 else plain


class GcnOptions(MessagePassingOptions):
    """Kipf and Welling (2017)."""

    name: Literal["gcn"] = "gcn"


class GatOptions(MessagePassingOptions):
    """Velickovic et al. (2018); the heads together are `hidden` wide."""

    name: Literal["gat"] = "gat"
    heads: int = Field(2, ge=1, le=16)
    slope: float = Field(0.2, ge=0, le=1)

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model; torch's take attention along edges like torch-geometric's layer."""
        return super().kernels - {"reference"}

    @model_validator(mode="after")
    def _divides(self) -> GatOptions:
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} is no multiple of {self.heads} heads")
        return self


class SageOptions(MessagePassingOptions):
    """GraphSAGE (Hamilton et al. 2017) with the mean over all neighbours."""

    name: Literal["sage"] = "sage"


class SgcOptions(MessagePassingOptions):
    """Wu et al. (2019): one layer after `layers` propagations."""

    name: Literal["sgc"] = "sgc"


class MpnnOptions(MessagePassingOptions):
    """Message passing with edge features, FedGraphNN's Eq. 1; without edge features where there are none."""

    name: Literal["mpnn"] = "mpnn"


class FedGraphNNOptions(NetworkOptions):
    """FedGraphNN's molecule models: two layers and a readout of every node, averaged.

    Attributes
    ----------
    hidden, node, readout, graph : int
        Widths h, d, r and g: of the first and second layer, and of the readout's two.
    """

    name: Literal["fedgraphnn/gcn", "fedgraphnn/gat", "fedgraphnn/sage"]
    layers: Literal[2] = 2
    node: int = Field(64, ge=1, le=4096)
    readout: int = Field(64, ge=1, le=4096)
    graph: int = Field(64, ge=1, le=4096)

    any_task: ClassVar[bool] = True

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model."""
        return frozenset({"compiled", "csr"})


class FedGraphNNGcnOptions(FedGraphNNOptions):
    """Two propagations, dropout between them, no bias, no non-linearity."""

    name: Literal["fedgraphnn/gcn"] = "fedgraphnn/gcn"


class FedGraphNNGatOptions(FedGraphNNOptions):
    """`heads` heads side by side, then one; LeakyReLU of `slope` in the attention."""

    name: Literal["fedgraphnn/gat"] = "fedgraphnn/gat"
    heads: int = Field(2, ge=1, le=16)
    slope: float = Field(0.2, ge=0, le=1)


class FedGraphNNSageOptions(FedGraphNNOptions):
    """Mean over two neighbours drawn with replacement, of the node itself too, in both layers."""

    name: Literal["fedgraphnn/sage"] = "fedgraphnn/sage"


MoleculeOptions = FedGraphNNGcnOptions | FedGraphNNGatOptions | FedGraphNNSageOptions
"""Options of FedGraphNN's molecule models."""


class _EncoderOptions(Options):
    """What the encoders of unsupervised objectives have: neither dropout nor a head."""

    dropout: ClassVar[float] = 0.0
    head: ClassVar[Literal["dataset", "own"]] = "dataset"
    any_task: ClassVar[bool] = False
    kernels: ClassVar[frozenset[str]] = frozenset({"csr"})
    norms: ClassVar[tuple[str, ...]] = ()

    hidden: int = Field(32, ge=1, le=4096)
    layers: int = Field(3, ge=1, le=16)


class GinEncoderOptions(_EncoderOptions):
    """GIN as InfoGraph and FCLG use it: per layer an MLP, ReLU, BatchNorm; all layers side by side."""

    kernels: ClassVar[frozenset[str]] = frozenset({"compiled", "csr"})
    norms: ClassVar[tuple[str, ...]] = ("batch",)

    name: Literal["gin-encoder"] = "gin-encoder"

    @property
    def dimension(self) -> int:
        """Length of a graph's vector."""
        return self.layers * self.hidden


class MvgrlEncoderOptions(_EncoderOptions):
    """MVGRL's two GCNs, one per view, and the two MLPs that both share.

    ``register_layers`` says whether the convolutions are trained and averaged. The official code
    keeps them in a plain list, where the optimizer does not find them: they stay as they were drawn,
    here the same for all clients, so that their vectors can be clustered together. False does that.
    """

    name: Literal["mvgrl"] = "mvgrl"
    hidden: int = Field(512, ge=1, le=4096)
    layers: int = Field(4, ge=1, le=16)
    register_layers: bool = True

    @property
    def dimension(self) -> int:
        """Length of a graph's vector."""
        return self.hidden


EncoderOptions = GinEncoderOptions | MvgrlEncoderOptions
"""Options of the models that unsupervised objectives train."""

_ALL = (
    GinOptions,
    FedStarOptions,
    GcnOptions,
    GatOptions,
    SageOptions,
    SgcOptions,
    MpnnOptions,
    FedGraphNNGcnOptions,
    FedGraphNNGatOptions,
    FedGraphNNSageOptions,
    GinEncoderOptions,
    MvgrlEncoderOptions,
)

ModelOptions = Annotated[
    GinOptions
    | FedStarOptions
    | GcnOptions
    | GatOptions
    | SageOptions
    | SgcOptions
    | MpnnOptions
    | FedGraphNNGcnOptions
    | FedGraphNNGatOptions
    | FedGraphNNSageOptions
    | GinEncoderOptions
    | MvgrlEncoderOptions,
    Field(discriminator="name"),
]
"""Options of any model, told apart by `name`."""

MODELS: dict[str, type[BaseModel]] = {kind.model_fields["name"].default: kind for kind in _ALL}
"""Option classes by name; `fedmpi.models.networks` and `fedmpi.models.flops` have a line for each."""
