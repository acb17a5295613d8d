"""One case of a suite, checked and frozen (imports without torch)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field, SerializeAsAny, ValidationInfo, model_validator

from fedmpi.algorithms.base import AlgorithmOptions
from fedmpi.case.attacks import AttackOptions, NoAttack
from fedmpi.case.privacy import NoPrivacy, PrivacyOptions
from fedmpi.config.options import Options
from fedmpi.datasets.options import DatasetOptions
from fedmpi.errors import BadInput
from fedmpi.models.options import GinOptions, ModelOptions
from fedmpi.objectives.options import ObjectiveOptions, SupervisedOptions
from fedmpi.partition.options import PartitionOptions
from fedmpi.store.schema import config_digest
from fedmpi.tasks.known import classifies


class _AdamLike(Options):
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

    kernels: ClassVar[frozenset[str]] = frozenset({"compiled", "grouped", "csr", "reference"})
    """Kernels that can take its steps."""


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


class SgdOptions(Options):
    """Plain gradient descent with L2 weight decay inside, as SCAFFOLD needs it."""

    name: Literal["sgd"] = "sgd"
    lr: float = Field(0.01, gt=0)
    """Step length."""
    weight_decay: float = Field(0.0, ge=0)
    """Weight of the L2 penalty, whose gradient is added to the loss's."""

    kernels: ClassVar[frozenset[str]] = frozenset({"compiled", "csr", "reference"})

    @property
    def state(self) -> str:
        """Return that nothing is kept."""
        return "reset"


AnyAdam = AdamOptions | AdamWOptions
OptimizerOptions = Annotated[AdamOptions | AdamWOptions | SgdOptions, Field(discriminator="name")]
OPTIMIZERS: dict[str, type[BaseModel]] = {"adam": AdamOptions, "adamw": AdamWOptions, "sgd": SgdOptions}
"""Option classes by name."""


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
    dropouts: DropoutOptions = DropoutOptions()
    """Participants whose update is lost, or that do not help to lift the masks of a secure sum."""

    added: ClassVar[frozenset[str]] = frozenset({"buffers", "dropouts"})
    secret: ClassVar[bool] = False
    """Whether the server must not see a single client's update."""


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
REDUCTIONS: dict[str, type[Options]] = {
    "exact": ExactOptions,
    "float32": Float32Options,
    "fixed32": Fixed32Options,
    "secagg": SecAggOptions,
    "secagg+": SecAggPlusOptions,
    "lightsecagg": LightSecAggOptions,
}
"""Option classes by name."""


class EvaluationOptions(Options):
    """Which clients are evaluated on the new models, and how often (the last round always)."""

    clients: Literal["all", "participants"] = "all"
    """Which clients evaluate the new models: all, or those that trained in the round."""
    every: int = Field(1, ge=1, le=1_000_000)
    """Rounds from one evaluation to the next; the last round is always evaluated."""
    embeddings: tuple[int, ...] = Field((), strict=False)
    """Rounds, from 1, whose vectors of all graphs are kept beside the record; unsupervised only."""
    probe: bool = False
    """Whether a linear classifier is trained on the embeddings too; unsupervised objectives only."""
    vectors: Literal["raw", "unit"] = "raw"
    """Whether vectors are divided by their 2-norm before they are clustered; unsupervised objectives only."""

    added: ClassVar[frozenset[str]] = frozenset({"embeddings", "probe", "vectors"})


class LinkOptions(Options):
    """The stated client link behind the virtual federated seconds."""

    megabits: float = Field(100.0, gt=0)
    """Megabits per second of each client."""
    latency_ms: float = Field(20.0, ge=0)
    """Milliseconds that a message takes on top."""


def _classifies(values: Mapping[str, Any]) -> bool:
    """Return whether each graph of a case has one class, as most models' fast kernels need it."""
    try:
        return classifies(values.get("task", ""), values.get("dataset", DatasetOptions()).name)
    except BadInput:  # no name of a dataset: said when the case is checked
        return True


class Case(Options):
    """Everything that decides a run's results, and a little that decides its timings."""

    added: ClassVar[frozenset[str]] = frozenset(
        {"subnormals", "plugin", "task", "weights", "record", "attack", "privacy"}
    )

    suite: str
    name: str
    plugin: dict[str, str] = Field({})
    """SHA-256 of the files outside of fedmpi that define parts of the case; the registry fills it."""
    rounds: int = Field(20, ge=1, le=1_000_000)
    """Rounds of the federation."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Of everything that is drawn in the run; the split has a seed of its own."""
    dataset: SerializeAsAny[DatasetOptions] = DatasetOptions()
    """What is trained on."""
    partition: SerializeAsAny[PartitionOptions]
    """Who holds which examples."""
    task: str = ""
    """What is predicted; by default what the dataset's own labels are for."""
    model: SerializeAsAny[ModelOptions] = GinOptions()
    """Network of each client."""
    objective: SerializeAsAny[ObjectiveOptions] = SupervisedOptions()
    """What a client minimises."""
    algorithm: SerializeAsAny[AlgorithmOptions]
    """How clients train together."""
    optimizer: OptimizerOptions = AdamOptions()
    """Takes the clients' local steps."""
    reduction: ReductionOptions = ExactOptions()
    """How updates are summed."""
    attack: Annotated[AttackOptions, Field(discriminator="name")] = NoAttack()
    """Clients that send what harms the others."""
    privacy: Annotated[PrivacyOptions, Field(discriminator="name")] = NoPrivacy()
    """Clipping of updates, and noise in their means."""
    share: Literal["conv", "all"] = "conv"
    """What leaves a client: the convolutions with their normalisation and a structure channel ("conv"; input
    layer and head stay), or every tensor ("all"). GraphNorm stays in both; some algorithms decide alone."""
    weights: Literal["samples", "equal"] = "samples"
    """What a client counts in averages: its number of training examples, or 1."""
    record: Literal["full", "protocol"] = "full"
    """Whether rank 0 records values of single clients, or only sums over clients, as a secure reduction."""
    participation: float = Field(1.0, gt=0, le=1)
    """Share of the clients that train in a round."""
    local_epochs: int = Field(1, ge=1, le=10_000)
    """Passes of a client over its training examples in a round."""
    batch_size: int = Field(128, ge=1, le=10_000_000)
    """Graphs of a local step at most."""
    evaluation: EvaluationOptions = EvaluationOptions()
    """Which clients are evaluated, how often, and on what."""
    kernels: Literal["compiled", "grouped", "csr", "reference"] = "compiled"
    """By default "compiled" on one thread of a CPU, "grouped" on a GPU, where these can run model,
    objective, algorithm and optimizer; else torch's CSR products, "csr"."""
    group_size: int = Field(16, ge=1, le=4096)
    """Clients whose steps the kernels "grouped" take together."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where clients train."""
    threads: int = Field(1, ge=1, le=1024)
    """Threads of each rank."""
    subnormals: Literal["kept", "flushed"] = "kept"
    """Whether numbers below 1.2e-38 are kept or become 0. They come from weights and moments that nothing
    feeds any more; some processors take a hundred cycles for each operation on one."""
    server: Literal["dedicated", "shared"] = "dedicated"
    """Whether rank 0 hosts clients, too, where there are several ranks. Not part of the configuration."""
    checkpoint_seconds: float = Field(30.0, ge=0)
    """Seconds from one checkpoint to the next; 0: after every round."""
    checkpoints: Literal["kept", "removed"] = "kept"
    """Whether a complete run keeps its last checkpoint, which has the final models. Not part of the
    configuration."""
    watchdog_seconds: float = Field(1800.0, ge=0)
    """Silence after which a rank that stands still ends the run; 0: never. Not part of the configuration."""
    link: LinkOptions = LinkOptions()
    """The clients' link, for virtual seconds; no result depends on it."""

    @model_validator(mode="before")
    @classmethod
    def _choose_kernels(cls, values: Any, info: ValidationInfo) -> Any:
        """Choose kernels that can run everything; the context names those that algorithm and task can use."""
        alone = "compiled" if values.get("threads", 1) == 1 else "csr"
        wanted = "grouped" if values.get("device") == "cuda" else alone
        model: ModelOptions = values.get("model", GinOptions())
        able = model.kernels & (info.context or {}).get("kernels", model.kernels)
        for axis in ("objective", "optimizer"):
            able &= getattr(values.get(axis), "kernels", able)
        if wanted not in able or not (model.any_task or _classifies(values)):
            wanted = "csr"
        return {"kernels": wanted, **values}

    def config(self) -> dict[str, Any]:
        """Return the resolved configuration as plain data, as it is stored in the record.

        When a run is given up is no part of it, so that one that was can be continued with more patience;
        nor is where its clients live, nor what stays of its checkpoints.
        """
        unused = {"watchdog_seconds", "server", "checkpoints"}
        if self.kernels != "grouped":
            unused.add("group_size")
        return self.model_dump(mode="json", exclude=unused)

    @property
    def shared(self) -> bool:
        """Whether rank 0 may host clients beside others."""
        return self.server == "shared"

    def digest(self) -> str:
        """Return the sha256 of the configuration, as the record has it."""
        return config_digest(self.config())
