"""All topologies by name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedmpi.config.options import by_name
from fedmpi.topologies.drawn import ErdosRenyiOptions, RegularOptions
from fedmpi.topologies.exponential import ExponentialOptions, OnePeerOptions
from fedmpi.topologies.fixed import CompleteOptions, RingOptions, StarOptions, TorusOptions
from fedmpi.topologies.listed import FileOptions
from fedmpi.topologies.server import ServerOptions

_Fixed = RingOptions | TorusOptions | StarOptions | CompleteOptions
_Others = ExponentialOptions | OnePeerOptions | RegularOptions | ErdosRenyiOptions | FileOptions
AnyTopology = ServerOptions | _Fixed | _Others
Topology = Annotated[AnyTopology, Field(discriminator="name")]
TOPOLOGIES = by_name(AnyTopology)
"""Option classes by name."""
