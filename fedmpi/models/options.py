"""Options of the models (imports without torch)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class GinOptions(BaseModel):
    """GIN as in GCFL: Linear, `layers` GIN convolutions, sum pooling, a head of two Linears.

    ``head`` sizes the last layer by the dataset's classes or, as the released
    GCFL code does, by the labels that occur in the client's own training split.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    name: Literal["gin"] = "gin"
    hidden: int = Field(64, ge=1, le=4096)
    layers: int = Field(3, ge=1, le=16)
    dropout: float = Field(0.5, ge=0, lt=1)
    head: Literal["dataset", "own"] = "dataset"
