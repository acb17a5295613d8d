"""What a suite may say about the partition: one class per kind, told apart by `name`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

SPLIT_SEED = 123
"""GCFL's released code draws every partition and split with this seed, whatever the run's seed."""


class _Seeded(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    seed: int = Field(default=SPLIT_SEED, ge=0, lt=2**32, description="split seed, apart from the run's seed")


class Chunks(_Seeded):
    """GCFL's one-dataset setting: a block of 50 graphs per client, the rest at random.

    With `overlap` each client draws 50 to 149 graphs with replacement instead.
    """

    name: Literal["chunks"] = "chunks"
    clients: int = Field(default=10, ge=1)
    overlap: bool = False


class PerDataset(_Seeded):
    """One client per dataset; with `tiny` only 150 graphs of each, stratified."""

    name: Literal["per-dataset"] = "per-dataset"
    tiny: bool = False


class Iid(_Seeded):
    """One dataset dealt out at random in equal shares."""

    name: Literal["iid"] = "iid"
    clients: int = Field(default=10, ge=1)


class _Dirichlet(_Seeded):
    clients: int = Field(default=10, ge=1)
    alpha: float = Field(default=0.5, gt=0, allow_inf_nan=False)
    min_graphs: int = Field(default=10, ge=6, description="drawn anew until every client has so many")


class DirichletLabel(_Dirichlet):
    """Each class is dealt out in shares drawn from a symmetric Dirichlet distribution."""

    name: Literal["dirichlet-label"] = "dirichlet-label"


class DirichletQuantity(_Dirichlet):
    """The whole dataset is dealt out in shares drawn from a symmetric Dirichlet distribution."""

    name: Literal["dirichlet-quantity"] = "dirichlet-quantity"


class DominantShare(_Seeded):
    """FCLG's setting: each class has `share` of its graphs on its own clients, the rest on the others.

    With C classes every run of ``clients / C`` clients is home to one class. ``share = "uniform"``
    is 1 / C: the paper's IID setting; 0.8 is its non-IID one. All graphs are training graphs.
    """

    name: Literal["dominant-share"] = "dominant-share"
    clients: int = Field(default=6, ge=2)
    share: Annotated[float, Field(gt=0, le=1)] | Literal["uniform"] = 0.8

    @field_validator("share", mode="before")
    @classmethod
    def _known(cls, share: object) -> object:
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if share != "uniform" and not (number and 0 < share <= 1):  # type: ignore[operator]
            raise ValueError('a share is above 0 and at most 1, or "uniform"')
        return share


class FedGraphNN(_Seeded):
    """FedGraphNN's setting: the dataset is split once, then each part is dealt out to all clients.

    Attributes
    ----------
    allocation : str
        ``quantity``, one Dirichlet draw per part, as the released code; ``label``, one per class, as
        the paper's text; or ``uniform``.
    split : str
        ``random`` 80/10/10 as for molecules, ``stratified`` 81/9/10 as for TU datasets, or ``scaffold``.
    """

    name: Literal["fedgraphnn"] = "fedgraphnn"
    seed: int = Field(default=0, ge=0, lt=2**32, description="as published; apart from the run's seed")
    clients: int = Field(default=4, ge=1)
    alpha: float = Field(default=0.5, gt=0, allow_inf_nan=False)
    allocation: Literal["quantity", "label", "uniform"] = "quantity"
    split: Literal["random", "stratified", "scaffold"] = "random"


PartitionOptions = Annotated[
    Chunks | PerDataset | Iid | DirichletLabel | DirichletQuantity | DominantShare | FedGraphNN,
    Field(discriminator="name"),
]
