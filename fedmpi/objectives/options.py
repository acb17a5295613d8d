"""Options of the objectives (imports without torch)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from fedmpi.config.options import Options
from fedmpi.errors import BadInput
from fedmpi.graphs.diffusion import DiffusionOptions
from fedmpi.kinds import Kind, file_of, imported
from fedmpi.models.options import ModelOptions, Shape

_EVERY_KERNEL = frozenset({"compiled", "grouped", "csr", "reference"})
_ENCODER_KERNELS = frozenset({"compiled", "csr"})


class ObjectiveOptions(Options):
    """Base of all objectives' options; a suite finds an objective under the default of `name`."""

    name: str

    supervised: ClassVar[bool] = False
    """Whether labels are trained on, and clients scored on held-out graphs; else embeddings are clustered."""
    smallest_batch: ClassVar[int] = 2
    """Batches of fewer graphs are left out: alone, a graph has nothing to be told apart from."""
    kernels: ClassVar[frozenset[str]] = frozenset({"csr"})
    """Kernels that can train it."""
    model: ClassVar[str] = "gin-encoder"
    """The model that it trains; empty for those with a head."""
    module: ClassVar[str] = ""
    """Class of the loss, ``module:class``, which `make` calls with the options."""
    formula: ClassVar[str] = ""
    """Class of the FLOPs, likewise, for `flops`."""

    @property
    def view(self) -> DiffusionOptions | None:
        """The second view of each graph; None where there is none."""
        return None

    @property
    def keeps_last_round(self) -> bool:
        """Whether the parameters at the end of a client's last round are kept for its next."""
        return False

    def make(self) -> Any:
        """Return the loss, a `fedmpi.objectives.unsupervised.OneEncoder`; import torch in here."""
        return imported(self.module)(self)

    def network(self, model: ModelOptions, shape: Shape) -> Any:
        """Return a fresh module: the model's, with heads where the objective has its own."""
        return model.network(shape)

    def flops(self, model: ModelOptions, shape: Shape) -> Any:
        """Return the FLOPs by formula, such as a `fedmpi.objectives.flops.ObjectiveFlops`.

        None: they are counted by torch on one batch.
        """
        return imported(self.formula)(self, model, shape) if self.formula else None


class SupervisedOptions(ObjectiveOptions):
    """The loss of the dataset's task, cross-entropy for classes."""

    supervised: ClassVar[bool] = True
    smallest_batch: ClassVar[int] = 1
    kernels: ClassVar[frozenset[str]] = _EVERY_KERNEL
    model: ClassVar[str] = ""

    name: Literal["supervised"] = "supervised"

    def make(self) -> Any:
        """Never be asked: the task of the labels has the loss."""
        raise AssertionError("a supervised objective has no loss of its own")


class _Counted(ObjectiveOptions):
    """What fedmpi's own unsupervised objectives have."""

    kernels: ClassVar[frozenset[str]] = _ENCODER_KERNELS
    formula: ClassVar[str] = "fedmpi.objectives.flops:ObjectiveFlops"


class InfoGraphOptions(_Counted):
    """InfoGraph: mutual information of a graph's vector and those of its nodes, by the JSD bound."""

    module: ClassVar[str] = "fedmpi.objectives.unsupervised:InfoGraph"

    paper: ClassVar[str] = "Sun et al., ICLR 2020"
    name: Literal["infograph"] = "infograph"

    def network(self, model: ModelOptions, shape: Shape) -> Any:
        """Return a fresh encoder with the heads for nodes and graphs."""
        return imported("fedmpi.objectives.unsupervised:InfoGraphNetwork")(model, shape)


class _TwoViews(_Counted):
    diffusion: DiffusionOptions = DiffusionOptions()
    """Of the second view."""

    @property
    def view(self) -> DiffusionOptions | None:
        """The second view of each graph."""
        return self.diffusion


class MvgrlOptions(_TwoViews):
    """MVGRL: the nodes of one view against the graphs of the other, by the JSD bound."""

    kernels: ClassVar[frozenset[str]] = frozenset({"csr"})
    model: ClassVar[str] = "mvgrl"
    module: ClassVar[str] = "fedmpi.objectives.unsupervised:Mvgrl"

    paper: ClassVar[str] = "Hassani and Khasahmadi, ICML 2020"
    name: Literal["mvgrl"] = "mvgrl"


class _Intra(_TwoViews):
    """What all of FCLG's variants have: contrast between the two views of a batch's graphs."""

    module: ClassVar[str] = "fedmpi.objectives.unsupervised:Intra"

    temperature: float = Field(0.5, gt=0)
    """tau of Eq. 5."""
    normalise: bool = True
    """Whether vectors are divided by their 2-norm first; Eq. 5 prints the plain product."""


class IntraOptions(_Intra):
    """Intra-FedAvg: Eq. 5 and 6 alone."""

    paper: ClassVar[str] = "FCLG, Eq. 6"
    name: Literal["intra"] = "intra"


class _Inter(_Intra):
    """A second term, between the local model and frozen copies, with its weight in Eq. 9."""

    inter_weight: float = Field(1.0, ge=0)
    """Weight of the second term, in Eq. 9."""


class _Fclg(_Inter):
    """Contrast with the received model (alike) and an earlier local one (unlike)."""

    inter_temperature: float = Field(0.5, gt=0)
    """tau' of Eq. 7 and 8."""
    previous: Literal["epoch", "round"] = "epoch"
    """The earlier model: that at the end of the previous local epoch (Algorithm 1), or of the client's
    previous round (as MOON, Li, He and Song 2021)."""

    @property
    def keeps_last_round(self) -> bool:
        """Whether the parameters at the end of a client's last round are kept for its next."""
        return self.previous == "round"


class FclgOptions(_Fclg):
    """FCLG: Eq. 7 on the vectors of graphs."""

    paper: ClassVar[str] = "FCLG, Eq. 7"
    name: Literal["fclg"] = "fclg"


class FclgNodesOptions(_Fclg):
    """FCLG-H: Eq. 8 on the vectors of nodes."""

    paper: ClassVar[str] = "FCLG, Eq. 8"
    name: Literal["fclg-h"] = "fclg-h"


class IntraKlOptions(_Inter):
    """Intra-KL: divergence of the local from the received model's softmax over the dimensions (Eq. 2)."""

    paper: ClassVar[str] = "FCLG, Eq. 2"
    name: Literal["intra-kl"] = "intra-kl"
    inter_temperature: float = Field(0.5, gt=0)
    """Of both softmaxes."""


class IntraMseOptions(_Inter):
    """Intra-MSE: squared distance of the local from the received model's vectors (Eq. 3)."""

    paper: ClassVar[str] = "FCLG, Eq. 3"
    name: Literal["intra-mse"] = "intra-mse"
    inter_normalise: bool = True
    """Whether these are divided by their 2-norm first, without which the term dwarfs the other."""


def _refuse_misfit(kind: type[ObjectiveOptions]) -> None:
    """Raise BadInput for an objective of a plug-in that trains on labels."""
    if kind.supervised and not kind.__module__.startswith("fedmpi."):
        place = f"{file_of(kind)}: class {kind.__name__}"
        raise BadInput(f"{place}: supervised = True: the loss on labels is that of the dataset's task")


OBJECTIVES: Kind[ObjectiveOptions] = Kind(
    "objective",
    ObjectiveOptions,
    "fedmpi.objectives.options",
    "fedmpi.objectives",
    refuse_misfit=_refuse_misfit,
    required=(("make", "module"),),
)
"""Options of every objective by name."""
