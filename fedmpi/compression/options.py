"""All compressors by name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedmpi.compression.halves import Bfloat16Options, Float16Options
from fedmpi.compression.int8 import Int8Options
from fedmpi.compression.none import NoCompression
from fedmpi.compression.powersgd import PowerSgdOptions
from fedmpi.compression.qsgd import QsgdOptions
from fedmpi.compression.random_k import RandomKOptions
from fedmpi.compression.sign import SignOptions
from fedmpi.compression.top_k import TopKOptions
from fedmpi.config.options import by_name

_Halves = Float16Options | Bfloat16Options
_Others = Int8Options | TopKOptions | RandomKOptions | QsgdOptions | SignOptions | PowerSgdOptions
AnyCompression = NoCompression | _Halves | _Others
Compression = Annotated[AnyCompression, Field(discriminator="name")]
COMPRESSIONS = by_name(AnyCompression)
"""Option classes by name."""
