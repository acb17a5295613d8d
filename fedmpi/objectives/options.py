"""Options of the objectives (imports without torch)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BaseModel, Field

from fedmpi.config.options import Options
from fedmpi.graphs.diffusion import DiffusionOptions

_EVERY_KERNEL = frozenset({"compiled", "grouped", "csr", "reference"})


class _Objective(Options):
    """What the engine asks of every objective's options."""

    supervised: ClassVar[bool] = False
    """Whether labels are trained on, and clients scored on held-out graphs; else embeddings are clustered."""
    smallest_batch: ClassVar[int] = 2
    """Batches of fewer graphs are left out: alone, a graph has nothing to be told apart from."""
    kernels: ClassVar[frozenset[str]] = frozenset({"compiled", "csr"})
    """Kernels that can train it."""
    model: ClassVar[str] = "gin-encoder"
    """The model that it trains; empty for those with a head."""

    @property
    def view(self) -> DiffusionOptions | None:
        """The second view of each graph; None where there is none."""
        return None

    @property
    def keeps_last_round(self) -> bool:
        """Whether the parameters at the end of a client's last round are kept for its next."""
        return False


class SupervisedOptions(_Objective):
    """Cross-entropy on graph labels."""

    supervised: ClassVar[bool] = True
    smallest_batch: ClassVar[int] = 1
    kernels: ClassVar[frozenset[str]] = _EVERY_KERNEL
    model: ClassVar[str] = ""

    name: Literal["supervised"] = "supervised"


class InfoGraphOptions(_Objective):
    """InfoGraph: mutual information of a graph's vector and those of its nodes, by the JSD bound."""

    name: Literal["infograph"] = "infograph"


class _TwoViews(_Objective):
    diffusion: DiffusionOptions = DiffusionOptions()

    @property
    def view(self) -> DiffusionOptions | None:
        """The second view of each graph."""
        return self.diffusion


class MvgrlOptions(_TwoViews):
    """MVGRL: the nodes of one view against the graphs of the other, by the JSD bound."""

    kernels: ClassVar[frozenset[str]] = frozenset({"csr"})
    model: ClassVar[str] = "mvgrl"

    name: Literal["mvgrl"] = "mvgrl"


class _Intra(_TwoViews):
    """What all of FCLG's variants have: contrast between the two views of a batch's graphs.

    Attributes
    ----------
    temperature : float
        tau of Eq. 5.
    normalise : bool
        Whether vectors are divided by their 2-norm first; Eq. 5 prints the plain product.
    """

    temperature: float = Field(0.5, gt=0)
    normalise: bool = True


class IntraOptions(_Intra):
    """Intra-FedAvg: Eq. 5 and 6 alone."""

    name: Literal["intra"] = "intra"


class _Inter(_Intra):
    """A second term, between the local model and frozen copies, with its weight in Eq. 9."""

    inter_weight: float = Field(1.0, ge=0)


class _Fclg(_Inter):
    """Contrast with the received model (alike) and an earlier local one (unlike).

    Attributes
    ----------
    inter_temperature : float
        tau' of Eq. 7 and 8.
    previous : str
        The earlier model: that at the end of the previous local ``epoch`` (Algorithm 1), or of the
        client's previous ``round`` (as MOON, Li, He and Song 2021).
    """

    inter_temperature: float = Field(0.5, gt=0)
    previous: Literal["epoch", "round"] = "epoch"

    @property
    def keeps_last_round(self) -> bool:
        """Whether the parameters at the end of a client's last round are kept for its next."""
        return self.previous == "round"


class FclgOptions(_Fclg):
    """FCLG: Eq. 7 on the vectors of graphs."""

    name: Literal["fclg"] = "fclg"


class FclgNodesOptions(_Fclg):
    """FCLG-H: Eq. 8 on the vectors of nodes."""

    name: Literal["fclg-h"] = "fclg-h"


class IntraKlOptions(_Inter):
    """Intra-KL: divergence of the local from the received model's softmax over the dimensions (Eq. 2)."""

    name: Literal["intra-kl"] = "intra-kl"
    inter_temperature: float = Field(0.5, gt=0)


class IntraMseOptions(_Inter):
    """Intra-MSE: squared distance of the local from the received model's vectors (Eq. 3).

    ``inter_normalise`` divides them by their 2-norm first, without which the term dwarfs the other.
    """

    name: Literal["intra-mse"] = "intra-mse"
    inter_normalise: bool = True


ObjectiveOptions = Annotated[
    SupervisedOptions
    | InfoGraphOptions
    | MvgrlOptions
    | IntraOptions
    | FclgOptions
    | FclgNodesOptions
    | IntraKlOptions
    | IntraMseOptions,
    Field(discriminator="name"),
]
"""Options of any objective."""

OBJECTIVES: dict[str, type[BaseModel]] = {
    kind.model_fields["name"].default: kind for kind in get_args(get_args(ObjectiveOptions)[0])
}
"""Option classes by name."""
