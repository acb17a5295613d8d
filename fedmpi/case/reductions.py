"""How updates are summed over ranks, and which clients drop out (imports without torch)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fedmpi.config.options import Options, by_name

DropoutStep = Literal["training", "shares", "upload", "answers"]
"""What a client does not do any more: train, share its secrets, send its update, help to lift the masks."""


class ScheduledDropout(Options):
    """Clients that drop out of one round."""

    round: int = Field(ge=1)
    """Counted from 1."""
    clients: tuple[int, ...] = Field(min_length=1, strict=False)
    """Numbers of clients as in the record, from 0."""
    step: DropoutStep = "upload"
    """Before which they do."""


class DropoutOptions(Options):
    """Participants that drop out in the middle of a round, and at which step."""

    probability: float = Field(0.0, ge=0, le=1)
    """With which a participant drops out of a round."""
    step: Literal[DropoutStep, "any"] = "upload"
    """Before which it does; "any": shares, upload and answers alike."""
    schedule: tuple[ScheduledDropout, ...] = Field((), strict=False)
    """Further dropouts; for the rounds and clients that it names it comes first."""

    @property
    def steps(self) -> set[str]:
        """Return the steps before which a client may drop out; empty if nobody does."""
        drawn = {self.step} if self.probability else set()
        return drawn | {each.step for each in self.schedule}

    def share(self, participants: int) -> float:
        """Return the share of so many participants that drops out of a round: as drawn, or as scheduled."""
        rounds = Counter(each.round for each in self.schedule for _ in each.clients)
        return min(max(self.probability, max(rounds.values(), default=0) / participants), 1.0)


class _Reduction(Options):
    buffers: Literal["host", "device"] = "host"
    """What MPI is handed: copies in host memory, or the device's own, which takes a GPU-aware MPI."""
    transport: Literal["mpi", "gloo", "nccl"] = "mpi"
    """What sums over ranks: MPI, or torch's Gloo in host memory, or NCCL between GPUs, one for each rank."""
    dropouts: DropoutOptions = DropoutOptions()
    """Participants whose update is lost, or that do not help to lift the masks of a secure sum."""

    added: ClassVar[frozenset[str]] = frozenset({"buffers", "transport", "dropouts"})
    secret: ClassVar[bool] = False
    """Whether the server must not see a single client's update."""

    @property
    def on_device(self) -> bool:
        """Whether updates stay on the device until they are summed over ranks."""
        return self.buffers == "device" or self.transport == "nccl"


class _Unclipped(_Reduction):
    removed: ClassVar[Mapping[str, Any]] = {"clip": 1.0}


class ExactOptions(_Unclipped):
    """Sums in 64-bit integers, the same bits in any order."""

    name: Literal["exact"] = "exact"


class Float32Options(_Unclipped):
    """Plain sums in single precision, whose last bits depend on the ranks."""

    name: Literal["float32"] = "float32"


class _Clipped(_Reduction):
    """Sums of updates whose elements are cut."""

    clip: float = Field(1.0, gt=0)
    """Each element of an update is cut to [-clip, clip]."""


class Fixed32Options(_Clipped):
    """Sums in 32-bit integers at a public exponent."""

    name: Literal["fixed32"] = "fixed32"


class _Secure(_Clipped):
    secret: ClassVar[bool] = True
    buffers: Literal["host"] = "host"
    transport: Literal["mpi"] = "mpi"
    server: Literal["semi-honest", "active"] = "semi-honest"
    """Server that updates are safe from: one that is curious, or one that may also send what it likes."""
    keys: Literal["run", "sum"] = "run"
    """Whether a client keeps its key pair for the run, or makes one for every sum."""
    below_threshold: Literal["skip", "stop"] = "skip"
    """Whether the run goes on or ends after a sum of which too few clients are left."""

    added: ClassVar[frozenset[str]] = _Reduction.added | {"below_threshold", "server"}


class SecAggOptions(_Secure):
    """SecAgg: the sums of "fixed32" under masks of all pairs of clients."""

    paper: ClassVar[str] = "Bonawitz et al. 2017"
    name: Literal["secagg"] = "secagg"
    threshold: float = Field(0.5, ge=0.5, lt=1)
    """More than this share of a group must stay to the end of a sum."""


class SecAggPlusOptions(_Secure):
    """SecAgg+: masks of neighbours in a random regular graph."""

    paper: ClassVar[str] = "Bell et al. 2020"
    name: Literal["secagg+"] = "secagg+"
    server: Literal["semi-honest"] = "semi-honest"
    threshold: float = Field(0.5, gt=0, lt=1)
    """More than this share of a client and its neighbours must stay to the end of a sum."""
    neighbours: int = Field(40, ge=2, multiple_of=2)
    """Neighbours of each client; in a group that has no more clients, all."""
    colluders: float = Field(0.0, ge=0, lt=1)
    """Share of a round's participants that may work with the server and still learn nothing of one update."""

    added: ClassVar[frozenset[str]] = _Secure.added | {"colluders"}


class LightSecAggOptions(_Secure):
    """LightSecAgg: the sums of "fixed32" under one mask per client, in a field of 2^31 - 1 elements."""

    paper: ClassVar[str] = "So et al. 2022"
    name: Literal["lightsecagg"] = "lightsecagg"
    threshold: float = Field(0.7, gt=0, le=1)
    """Share of a group, rounded up, that must stay to the end of a sum."""
    colluders: float = Field(0.5, ge=0, lt=1)
    """Share of a group, rounded down, that may work with the server and still learns nothing."""


SecureOptions = SecAggOptions | SecAggPlusOptions | LightSecAggOptions
ClippedOptions = Fixed32Options | SecureOptions
AnyReduction = ExactOptions | Float32Options | ClippedOptions
ReductionOptions = Annotated[AnyReduction, Field(discriminator="name")]
REDUCTIONS = by_name(AnyReduction)
"""Option classes by name."""
