"""Options of the objectives (imports without torch)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class SupervisedOptions(BaseModel):
    """Cross-entropy on graph labels."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: Literal["supervised"] = "supervised"
