"""Client-level differential privacy, and clipping alone (imports without torch)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fedmpi.config.options import Options, by_name


class NoPrivacy(Options):
    """Updates are averaged as they are."""

    name: Literal["none"] = "none"


class Clipping(Options):
    """Updates are shortened to a 2-norm of at most `clip`: a defence, and no privacy by itself."""

    name: Literal["clipping"] = "clipping"
    clip: float = Field(1.0, gt=0)
    """Largest 2-norm of an update."""


class _Private(Options):
    """Clipped updates of equal weight, and Gaussian noise."""

    clip: float = Field(1.0, gt=0)
    """Largest 2-norm of an update."""
    noise_multiplier: float = Field(1.0, gt=0)
    """Standard deviation of the noise in the sum of a round, over what one client can add to the sum."""
    delta: float = Field(1e-5, gt=0, lt=1)
    """Of (epsilon, delta)-differential privacy."""

    distributed: ClassVar[bool]


class CentralPrivacy(_Private):
    """The server, which clients trust, adds the noise to the mean."""

    name: Literal["central"] = "central"
    distributed: ClassVar[bool] = False


class DistributedPrivacy(_Private):
    """Every participant adds its share of the noise: discrete Gaussian, on the grid of the sum."""

    name: Literal["distributed"] = "distributed"
    distributed: ClassVar[bool] = True


Private = CentralPrivacy | DistributedPrivacy
Clipped = Clipping | Private
PrivacyOptions = NoPrivacy | Clipped
PRIVACY = by_name(PrivacyOptions)
"""Option classes by name."""
