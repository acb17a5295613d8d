"""What a suite may say about its data."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from fedmpi.datasets.features import FeatureKind
from fedmpi.datasets.synthetic import SyntheticOptions
from fedmpi.datasets.tables import SYNTHETIC


class DatasetOptions(BaseModel):
    """Dataset and node features.

    Attributes
    ----------
    name : str
        ``synthetic``, a group such as ``gcfl/molecules``, any TU dataset, several joined as in
        ``PROTEINS+DD``, or the path of an own folder in TU format.
    features : str
        One of `fedmpi.datasets.features.FEATURES`.
    synthetic : SyntheticOptions
        Size of the generated domains; read for ``synthetic`` only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = Field(default=SYNTHETIC, min_length=1)
    features: FeatureKind = "original"
    synthetic: SyntheticOptions = SyntheticOptions()
