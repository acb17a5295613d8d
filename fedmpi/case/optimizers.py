"""The clients' optimizers (imports without torch)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedmpi.config.options import Options, by_name


class _Clipped(Options):
    added: ClassVar[frozenset[str]] = frozenset({"clip"})
    clip: float = Field(0.0, ge=0)
    """Largest 2-norm of a step's gradient: longer ones are scaled down (Pascanu et al. 2013); 0: none."""


class _AdamLike(_Clipped):
    lr: float = Field(1e-3, gt=0)
    """Step length."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay of the first moment."""
    beta2: float = Field(0.999, ge=0, lt=1)
    """Decay of the second moment."""
    eps: float = Field(1e-8, gt=0)
    """Added to the root of the second moment, against division by zero."""
    state: Literal["kept", "reset"] = "kept"
    """Whether moments and step count survive from round to round, as in the released GCFL code."""


class AdamOptions(_AdamLike):
    """The clients' optimizer: Adam with L2 weight decay inside (not AdamW)."""

    paper: ClassVar[str] = "Kingma and Ba, ICLR 2015"
    name: Literal["adam"] = "adam"
    weight_decay: float = Field(5e-4, ge=0)
    """Weight of the L2 penalty, whose gradient is added to the loss's."""


class AdamWOptions(_AdamLike):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), by default as torch's AdamW."""

    paper: ClassVar[str] = "Loshchilov and Hutter, ICLR 2019"
    name: Literal["adamw"] = "adamw"
    weight_decay: float = Field(1e-2, ge=0)
    """Share by which weights shrink in a step, times `lr`."""


class SgdOptions(_Clipped):
    """Gradient descent with L2 weight decay inside: plain, as SCAFFOLD needs it, or with momentum."""

    added: ClassVar[frozenset[str]] = frozenset({"momentum", "clip"})
    name: Literal["sgd"] = "sgd"
    lr: float = Field(0.01, gt=0)
    """Step length."""
    weight_decay: float = Field(0.0, ge=0)
    """Weight of the L2 penalty, whose gradient is added to the loss's."""
    momentum: float = Field(0.0, ge=0, lt=1)
    """Share of the last step that is added to a step (Polyak 1964), from zero in each round."""

    @property
    def state(self) -> str:
        """Return that no round begins with a velocity."""
        return "reset"


AnyAdam = AdamOptions | AdamWOptions
AnyOptimizer = AnyAdam | SgdOptions
OptimizerOptions = Annotated[AnyOptimizer, Field(discriminator="name")]
OPTIMIZERS = by_name(AnyOptimizer)
"""Option classes by name."""
