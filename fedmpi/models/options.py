"""Options of the models (imports without torch)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from fedmpi.config.options import Options
from fedmpi.kinds import Kind, imported

if TYPE_CHECKING:
    from fedmpi.models.counts import ModelFlops


@dataclass(frozen=True)
class Shape:
    """Input width and number of outputs of a client's model, and the width of its edges' attributes."""

    width: int
    classes: int
    edges: int = 0


class ModelOptions(Options):
    """Base of all models' options; a suite finds a model under the default of `name`."""

    name: str
    hidden: int = Field(64, ge=1, le=4096)
    layers: int = Field(3, ge=1, le=16)

    examples: ClassVar[frozenset[str]] = frozenset({"graph"})
    """What its head can predict of: graphs, nodes, edges."""
    relational: ClassVar[bool] = False
    """Whether it reads the relation of each edge, which is the class of a training example."""
    any_task: ClassVar[bool] = False
    """Whether the fast kernels train the model on several labels and on numbers, too, not on classes only."""
    compiled: ClassVar[bool] = False
    """Whether there are compiled kernels for all its options."""
    module: ClassVar[str] = ""
    """Class of the network, ``module:class``, which `network` calls with options and shape."""
    formula: ClassVar[str] = ""
    """Class of the FLOPs, likewise, for `flops`."""

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model; all can be run client by client by torch."""
        return frozenset({"compiled", "csr"} if self.compiled else {"csr"})

    @property
    def norms(self) -> tuple[str, ...]:
        """Names of the normalisation layers after each convolution, in order."""
        return ()

    @property
    def own_head(self) -> bool:
        """Whether the last layer is sized by the labels of the client's own training graphs."""
        return False

    def network(self, shape: Shape) -> Any:
        """Return a fresh module, a `fedmpi.models.networks.Network`; torch is imported here, not before."""
        return imported(self.module)(self, shape)

    def flops(self, shape: Shape) -> ModelFlops | None:
        """Return the FLOPs by formula; None: they are counted by torch on one batch."""
        found: ModelFlops | None = imported(self.formula)(self, shape) if self.formula else None
        return found


class NetworkOptions(ModelOptions):
    """What models with a head have.

    ``head`` sizes the last layer by the dataset's classes or, as the released
    GCFL code does, by the labels that occur in the client's own training split.
    """

    dropout: float = Field(0.5, ge=0, lt=1)
    head: Literal["dataset", "own"] = "dataset"

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model."""
        return super().kernels | {"reference"}

    @property
    def own_head(self) -> bool:
        """Whether the last layer is sized by the labels of the client's own training graphs."""
        return self.head == "own"


class GinOptions(NetworkOptions):
    """GIN as in GCFL: Linear, `layers` GIN convolutions, sum pooling, a head of two Linears."""

    module: ClassVar[str] = "fedmpi.models.gin:GIN"
    examples: ClassVar[frozenset[str]] = frozenset({"graph", "node", "edge"})
    formula: ClassVar[str] = "fedmpi.models.flops:GinFlops"

    name: Literal["gin"] = "gin"
    norm: Literal["none", "batch", "layer", "graph", "batch+graph"] = "none"
    """Normalisation between a convolution and its activation. GraphNorm is FedCCH's personalised factor:
    it stays with the client unless the algorithm says ``pf = "shared"``."""

    added: ClassVar[frozenset[str]] = frozenset({"norm"})

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model."""
        return super().kernels | ({"compiled", "grouped"} if self.norm == "none" else {"compiled"})

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

    compiled: ClassVar[bool] = True
    module: ClassVar[str] = "fedmpi.models.two_channel:FedStarNetwork"
    formula: ClassVar[str] = "fedmpi.models.two_channel_flops:FedStarFlops"

    name: Literal["fedstar"] = "fedstar"
    walks: int = Field(16, ge=1, le=64)
    degrees: int = Field(16, ge=1, le=1024)

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
        Linears of the head; with 1 it is the output alone, with 0 the output of a pair of nodes is the dot
        product of their states.
    """

    module: ClassVar[str] = "fedmpi.models.message_passing:GraphNetwork"
    examples: ClassVar[frozenset[str]] = frozenset({"graph", "node", "edge"})
    formula: ClassVar[str] = "fedmpi.models.message_passing_flops:MessagePassingFlops"

    name: Literal["gcn", "gat", "sage", "sgc", "mpnn"]
    pooling: Literal["mean", "sum"] = "mean"
    head_layers: Literal[0, 1, 2] = 2

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model; the compiled ones have a head of two layers."""
        return super().kernels | {"compiled"} if self.head_layers == 2 else super().kernels


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


class RgcnOptions(NetworkOptions):
    """RGCN with DistMult, for relations of edges (Schlichtkrull et al. 2018).

    Attributes
    ----------
    blocks : int
        Blocks of each relation's matrix.
    """

    module: ClassVar[str] = "fedmpi.models.rgcn:Rgcn"
    formula: ClassVar[str] = "fedmpi.models.rgcn_flops:RgcnFlops"
    examples: ClassVar[frozenset[str]] = frozenset({"edge"})
    relational: ClassVar[bool] = True

    name: Literal["rgcn"] = "rgcn"
    hidden: int = Field(64, ge=1, le=4096)
    layers: int = Field(2, ge=0, le=16)
    blocks: int = Field(4, ge=1, le=4096)
    dropout: float = Field(0.2, ge=0, lt=1)

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model."""
        return frozenset({"csr"})

    @model_validator(mode="after")
    def _divides(self) -> RgcnOptions:
        if self.hidden % self.blocks:
            raise ValueError(f"hidden {self.hidden} is no multiple of {self.blocks} blocks")
        return self


class FedGraphNNOptions(NetworkOptions):
    """FedGraphNN's molecule models: two layers and a readout of every node, averaged.

    Attributes
    ----------
    hidden, node, readout, graph : int
        Widths h, d, r and g: of the first and second layer, and of the readout's two.
    """

    module: ClassVar[str] = "fedmpi.models.fedgraphnn:MoleculeNetwork"
    formula: ClassVar[str] = "fedmpi.models.fedgraphnn_flops:FedGraphNNFlops"

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


class EncoderOptions(ModelOptions):
    """What the encoders of unsupervised objectives have: neither dropout nor a head."""

    hidden: int = Field(32, ge=1, le=4096)

    @property
    def dimension(self) -> int:
        """Length of a graph's vector."""
        return self.hidden


class GinEncoderOptions(EncoderOptions):
    """GIN as InfoGraph and FCLG use it: per layer an MLP, ReLU, BatchNorm; all layers side by side."""

    compiled: ClassVar[bool] = True
    module: ClassVar[str] = "fedmpi.models.encoder:GinEncoder"

    name: Literal["gin-encoder"] = "gin-encoder"

    @property
    def norms(self) -> tuple[str, ...]:
        """Names of the normalisation layers after each convolution, in order."""
        return ("batch",)

    @property
    def dimension(self) -> int:
        """Length of a graph's vector."""
        return self.layers * self.hidden


class MvgrlEncoderOptions(EncoderOptions):
    """MVGRL's two GCNs, one per view, and the two MLPs that both share.

    ``register_layers`` says whether the convolutions are trained and averaged. The official code
    keeps them in a plain list, where the optimizer does not find them: they stay as they were drawn,
    here the same for all clients, so that their vectors can be clustered together. False does that.
    """

    module: ClassVar[str] = "fedmpi.models.mvgrl:MvgrlEncoder"

    name: Literal["mvgrl"] = "mvgrl"
    hidden: int = Field(512, ge=1, le=4096)
    layers: int = Field(4, ge=1, le=16)
    register_layers: bool = True


MODELS: Kind[ModelOptions] = Kind(
    "model", ModelOptions, "fedmpi.models.options", "fedmpi.models", required=(("network", "module"),)
)
"""Options of every model by name."""
