"""Options of the models (imports without torch)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from fedmpi.config.options import Options
from fedmpi.kinds import Kind, imported
from fedmpi.models.layer_options import WHOLE, LayerName, LayerOptions, edges_missing

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
    """Width of the hidden layers."""
    layers: int = Field(3, ge=1, le=16)
    """Number of convolutions."""

    examples: ClassVar[frozenset[str]] = frozenset({"graph"})
    """What its head can predict of: graphs, nodes, edges."""
    relational: ClassVar[bool] = False
    """Whether it reads the relation of each edge, which is the class of a training example."""
    any_task: ClassVar[bool] = False
    """Whether compiled kernels are its default on several labels and on numbers, too, not on classes only."""
    compiled: ClassVar[bool] = False
    """Whether there are compiled kernels for all its options."""
    reference: ClassVar[bool] = False
    """Whether torch-geometric's layers can run it."""
    module: ClassVar[str] = ""
    """Class of the network, ``module:class``, which `network` calls with options and shape."""
    formula: ClassVar[str] = ""
    """Class of the FLOPs, likewise, for `flops`."""

    @property
    def structure_columns(self) -> tuple[int, int] | None:
        """Columns of the structure encoding that it reads: return probabilities of random walks, degrees."""
        return None

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model; all can be run client by client by torch."""
        others = {"compiled": self.compiled, "reference": self.reference}
        return frozenset({"csr", *(name for name, there in others.items() if there)})

    @property
    def defaults(self) -> frozenset[str]:
        """Those of `kernels` that may be a case's default."""
        return self.kernels

    @property
    def norms(self) -> tuple[str, ...]:
        """Names of the normalisation layers after each convolution, in order."""
        return ()

    @property
    def own_head(self) -> bool:
        """Whether the last layer is sized by the labels of the client's own training graphs."""
        return False

    def misfits(self, examples: str, edges: bool) -> Iterator[tuple[str, str]]:
        """Yield the options that cannot be with some data, and what to do; by default none.

        Parameters
        ----------
        examples : str
            What labels are of: a graph, a node or an edge.
        edges : bool
            Whether edges may have attributes.
        """
        return iter(())

    def network(self, shape: Shape) -> Any:
        """Return a fresh module, a `fedmpi.models.networks.Network`; torch is imported here, not before."""
        return imported(self.module)(self, shape)

    def flops(self, shape: Shape) -> ModelFlops | None:
        """Return the FLOPs by formula; None: they are counted by torch on one batch."""
        found: ModelFlops | None = imported(self.formula)(self, shape) if self.formula else None
        return found


class NetworkOptions(ModelOptions):
    """What models with a head have."""

    dropout: float = Field(0.5, ge=0, lt=1)
    """Probability with which an activation is dropped in training."""
    head: Literal["dataset", "own"] = "dataset"
    """The last layer is sized by the dataset's classes or, as the released GCFL code does, by the labels that
    occur in the client's own training split ("own")."""
    reference: ClassVar[bool] = True

    @property
    def own_head(self) -> bool:
        """Whether the last layer is sized by the labels of the client's own training graphs."""
        return self.head == "own"

    @property
    def embedding(self) -> int:
        """Width of what is pooled of each graph, before the head."""
        return self.hidden


class GinOptions(NetworkOptions):
    """GIN as in GCFL: Linear, GIN convolutions, sum pooling, a head of two Linears."""

    module: ClassVar[str] = "fedmpi.models.gin:GIN"
    examples: ClassVar[frozenset[str]] = frozenset({"graph", "node", "edge"})
    formula: ClassVar[str] = "fedmpi.models.flops:GinFlops"

    paper: ClassVar[str] = "Xu et al., ICLR 2019; as in GCFL"
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

    `fedmpi.graphs.encodings` makes the structure encodings.
    """

    compiled: ClassVar[bool] = True
    module: ClassVar[str] = "fedmpi.models.two_channel:FedStarNetwork"
    formula: ClassVar[str] = "fedmpi.models.flops:FedStarFlops"

    paper: ClassVar[str] = "Tan et al., AAAI 2023"
    name: Literal["fedstar"] = "fedstar"
    walks: int = Field(16, ge=1, le=64)
    """Columns of the structure encoding that are random-walk return probabilities."""
    degrees: int = Field(16, ge=1, le=1024)
    """Columns of the structure encoding that are the node's degree, one-hot."""

    @property
    def structure_columns(self) -> tuple[int, int]:
        """See `ModelOptions`."""
        return self.walks, self.degrees

    @property
    def encoding(self) -> int:
        """Width of the structure encoding."""
        return self.walks + self.degrees


class FedVnOptions(NetworkOptions):
    """FedVN's GIN with virtual nodes, whose edges to the nodes a second GIN scores."""

    module: ClassVar[str] = "fedmpi.models.virtual_nodes:FedVnNetwork"
    reference: ClassVar[bool] = False

    paper: ClassVar[str] = "Fu et al., AAAI 2025"
    name: Literal["fedvn"] = "fedvn"
    nodes: int = Field(20, ge=1, le=1024)
    """Virtual nodes of each graph."""

    @property
    def embedding(self) -> int:
        """Width of what is pooled of each graph: states, and scores of the virtual nodes."""
        return self.hidden + self.nodes


class MessagePassingOptions(NetworkOptions):
    """Linear, `layers` convolutions of torch-geometric with ReLU and dropout, pooling, a head."""

    module: ClassVar[str] = "fedmpi.models.message_passing:GraphNetwork"
    examples: ClassVar[frozenset[str]] = frozenset({"graph", "node", "edge"})
    formula: ClassVar[str] = "fedmpi.models.flops:MessagePassingFlops"

    name: Literal["gcn", "gat", "sage", "sgc", "mpnn", "torch-geometric"]
    pooling: Literal["mean", "sum"] = "mean"
    """Of the nodes of a graph."""
    head_layers: Literal[0, 1, 2] = 2
    """Linear layers of the head; 1: the output alone; 0: the output of a pair of nodes is the dot product of
    their states."""

    @property
    def modules(self) -> int:
        """Number of modules that hold the convolutions."""
        return self.layers

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model; compiled and grouped ones have a head."""
        return super().kernels | ({"compiled", "grouped"} if self.head_layers else set())

    @property
    def defaults(self) -> frozenset[str]:
        """See `ModelOptions`; with a head of one layer compiled and grouped kernels are chosen by name."""
        return self.kernels if self.head_layers == 2 else super().kernels


class GcnOptions(MessagePassingOptions):
    """GCN (Kipf and Welling 2017)."""

    paper: ClassVar[str] = "Kipf and Welling, ICLR 2017"
    name: Literal["gcn"] = "gcn"


class GatOptions(MessagePassingOptions):
    """GAT (Velickovic et al. 2018); the heads together are `hidden` wide."""

    paper: ClassVar[str] = "Velickovic et al., ICLR 2018"
    name: Literal["gat"] = "gat"
    heads: int = Field(2, ge=1, le=16)
    """Attention heads."""
    slope: float = Field(0.2, ge=0, le=1)
    """Slope below zero of LeakyReLU in the attention."""
    reference: ClassVar[bool] = False  # "csr" takes attention along edges, as torch-geometric's layer

    @model_validator(mode="after")
    def _divides(self) -> GatOptions:
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} is no multiple of {self.heads} heads")
        return self


class SageOptions(MessagePassingOptions):
    """GraphSAGE (Hamilton et al. 2017) with the mean over all neighbours."""

    paper: ClassVar[str] = "Hamilton et al., NeurIPS 2017"
    name: Literal["sage"] = "sage"


class SgcOptions(MessagePassingOptions):
    """SGC (Wu et al. 2019): one layer after so many propagations as `layers` says."""

    paper: ClassVar[str] = "Wu et al., ICML 2019"
    name: Literal["sgc"] = "sgc"

    @property
    def modules(self) -> int:
        """Number of modules that hold the convolutions."""
        return 1


class MpnnOptions(MessagePassingOptions):
    """Message passing with edge features, FedGraphNN's Eq. 1; without edge features where there are none."""

    paper: ClassVar[str] = "Gilmer et al., ICML 2017; FedGraphNN, Eq. 1"
    name: Literal["mpnn"] = "mpnn"

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model."""
        return super().kernels - {"grouped"}


class TorchGeometricOptions(MessagePassingOptions):
    """A network of torch-geometric's layers, or of one of its whole models, which run as they are."""

    module: ClassVar[str] = "fedmpi.models.layers:LayerNetwork"
    formula: ClassVar[str] = ""

    paper: ClassVar[str] = "Fey and Lenssen, PyTorch Geometric, 2019"
    name: Literal["torch-geometric"] = "torch-geometric"
    layer: LayerName
    """Class of the convolutions in ``torch_geometric.nn``, or of a whole model of them in its ``models``."""
    options: LayerOptions = LayerOptions()
    """Options of that class, named as there; those that are left out have the defaults there."""

    @property
    def modules(self) -> int:
        """Number of modules that hold the convolutions."""
        return 1 if self.layer in WHOLE else self.layers

    @property
    def norms(self) -> tuple[str, ...]:
        """Names of the normalisation layers after each convolution, as torch-geometric has them."""
        return () if self.options.norm is None else (self.options.norm,)

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model."""
        return frozenset({"csr"})

    @model_validator(mode="after")
    def _fits(self) -> TorchGeometricOptions:
        if misfit := self.options.misfit(self.layer, self.hidden):
            raise ValueError(misfit)
        if self.layer == "AttentiveFP" and self.pooling != "mean":
            raise ValueError('"AttentiveFP" reads its graphs itself: leave out pooling')
        return self

    def misfits(self, examples: str, edges: bool) -> Iterator[tuple[str, str]]:
        """See `ModelOptions`."""
        if self.layer == "AttentiveFP" and examples != "graph":
            yield "layer", f'"AttentiveFP" is for labels of graphs, not of {examples}s: use another layer'
        if not edges and (missing := edges_missing(self.layer)):
            yield "layer", missing


class RgcnOptions(NetworkOptions):
    """RGCN with DistMult, for relations of edges (Schlichtkrull et al. 2018)."""

    module: ClassVar[str] = "fedmpi.models.rgcn:Rgcn"
    formula: ClassVar[str] = "fedmpi.models.flops:RgcnFlops"
    examples: ClassVar[frozenset[str]] = frozenset({"edge"})
    relational: ClassVar[bool] = True

    paper: ClassVar[str] = "Schlichtkrull et al., ESWC 2018"
    name: Literal["rgcn"] = "rgcn"
    hidden: int = Field(64, ge=1, le=4096)
    """Width of the hidden layers."""
    layers: int = Field(2, ge=0, le=16)
    """Number of convolutions; 0: DistMult on the nodes' own vectors."""
    blocks: int = Field(4, ge=1, le=4096)
    """Blocks of each relation's matrix; `hidden` must be a multiple."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Probability with which an activation is dropped in training."""
    reference: ClassVar[bool] = False

    @model_validator(mode="after")
    def _divides(self) -> RgcnOptions:
        if self.hidden % self.blocks:
            raise ValueError(f"hidden {self.hidden} is no multiple of {self.blocks} blocks")
        return self


class FedGraphNNOptions(NetworkOptions):
    """FedGraphNN's molecule models: two layers and a readout of every node, averaged.

    `hidden` is the width h of the first layer.
    """

    module: ClassVar[str] = "fedmpi.models.fedgraphnn:MoleculeNetwork"
    paper: ClassVar[str] = "He et al., FedGraphNN, 2021"
    formula: ClassVar[str] = "fedmpi.models.fedgraphnn_flops:FedGraphNNFlops"

    name: Literal["fedgraphnn/gcn", "fedgraphnn/gat", "fedgraphnn/sage"]
    layers: Literal[2] = 2
    """Number of convolutions."""
    node: int = Field(64, ge=1, le=4096)
    """Width d of the second layer."""
    readout: int = Field(64, ge=1, le=4096)
    """Width r of the readout's first layer."""
    graph: int = Field(64, ge=1, le=4096)
    """Width g of the readout's second layer."""

    any_task: ClassVar[bool] = True
    compiled: ClassVar[bool] = True
    reference: ClassVar[bool] = False

    @property
    def kernels(self) -> frozenset[str]:
        """Kernels that can run the model."""
        return super().kernels | {"grouped"}

    @property
    def embedding(self) -> int:
        """Width of what is pooled of each graph, before the head."""
        return self.graph


class FedGraphNNGcnOptions(FedGraphNNOptions):
    """FedGraphNN's GCN: two propagations, dropout between them, no bias, no non-linearity."""

    name: Literal["fedgraphnn/gcn"] = "fedgraphnn/gcn"


class FedGraphNNGatOptions(FedGraphNNOptions):
    """FedGraphNN's GAT: several heads side by side, then one; LeakyReLU in the attention."""

    name: Literal["fedgraphnn/gat"] = "fedgraphnn/gat"
    heads: int = Field(2, ge=1, le=16)
    """Attention heads of the first layer."""
    slope: float = Field(0.2, ge=0, le=1)
    """Slope below zero of LeakyReLU in the attention."""


class FedGraphNNSageOptions(FedGraphNNOptions):
    """FedGraphNN's GraphSAGE: in both layers the mean over two neighbours drawn with replacement."""

    name: Literal["fedgraphnn/sage"] = "fedgraphnn/sage"


class EncoderOptions(ModelOptions):
    """What the encoders of unsupervised objectives have: neither dropout nor a head."""

    hidden: int = Field(32, ge=1, le=4096)
    """Width of the hidden layers."""

    @property
    def dimension(self) -> int:
        """Length of a graph's vector."""
        return self.hidden


class GinEncoderOptions(EncoderOptions):
    """GIN as InfoGraph and FCLG use it: per layer an MLP, ReLU, BatchNorm; all layers side by side."""

    compiled: ClassVar[bool] = True
    module: ClassVar[str] = "fedmpi.models.encoder:GinEncoder"

    paper: ClassVar[str] = "Sun et al., InfoGraph, ICLR 2020"
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
    """MVGRL's two GCNs, one per view, and the two MLPs that both share."""

    module: ClassVar[str] = "fedmpi.models.mvgrl:MvgrlEncoder"

    paper: ClassVar[str] = "Hassani and Khasahmadi, ICML 2020"
    name: Literal["mvgrl"] = "mvgrl"
    hidden: int = Field(512, ge=1, le=4096)
    """Width of the hidden layers."""
    layers: int = Field(4, ge=1, le=16)
    """Convolutions of each GCN."""
    register_layers: bool = True
    """Whether the convolutions are trained and averaged. The official code keeps them in a plain list, where
    the optimizer does not find them: they stay as they were drawn, here the same for all clients, so that
    their vectors can be clustered together. False does that."""


MODELS: Kind[ModelOptions] = Kind(
    "model", ModelOptions, "fedmpi.models.options", "fedmpi.models", required=(("network", "module"),)
)
"""Options of every model by name."""
