"""What a suite may say about its data."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from fedmpi.datasets.features import FeatureKind, Scaling
from fedmpi.datasets.synthetic import SyntheticOptions
from fedmpi.datasets.tables import SYNTHETIC


class DatasetOptions(BaseModel):
    """Dataset and node features.

    Attributes
    ----------
    name : str
        ``synthetic``, a group such as ``gcfl/molecules``, any TU dataset, a MoleculeNet set
        such as ``SIDER``, several joined as in ``PROTEINS+DD``, or the path of an own folder in TU format.
    features : str
        One of `fedmpi.datasets.features.FEATURES`.
    scaling : str
        One of `fedmpi.datasets.features.Scaling`.
    targets : str
        Regression: ``raw``, as published, or ``standardised`` by mean and deviation of all training graphs.
    synthetic : SyntheticOptions
        Size of the generated domains; read for ``synthetic`` only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = Field(default=SYNTHETIC, min_length=1)
    features: FeatureKind = "original"
    scaling: Scaling = "none"
    targets: Literal["raw", "standardised"] = "raw"
    synthetic: SyntheticOptions = SyntheticOptions()

    @model_serializer(mode="wrap")
    def _said(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out later additions at their default, so that the configuration of older runs stays equal."""
        values: dict[str, Any] = dump(self)
        return {
            key: value
            for key, value in values.items()
            if key not in ("scaling", "targets") or value != type(self).model_fields[key].default
        }
