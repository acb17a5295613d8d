"""One case of a suite, checked and frozen (imports without torch)."""

from __future__ import annotations

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
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.999, ge=0, lt=1)
    eps: float = Field(1e-8, gt=0)
    state: Literal["kept", "reset"] = "kept"
    """Whether moments and step count survive from round to round, as in the released GCFL code."""

    kernels: ClassVar[frozenset[str]] = frozenset({"compiled", "grouped", "csr", "reference"})
    """Kernels that can take its steps."""


class AdamOptions(_AdamLike):
    """The clients' optimizer: Adam with L2 weight decay inside (not AdamW)."""

    name: Literal["adam"] = "adam"
    weight_decay: float = Field(5e-4, ge=0)


class AdamWOptions(_AdamLike):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), by default as torch's AdamW."""

    name: Literal["adamw"] = "adamw"
    weight_decay: float = Field(1e-2, ge=0)


class SgdOptions(Options):
    """Plain gradient descent with L2 weight decay inside, as SCAFFOLD needs it."""

    name: Literal["sgd"] = "sgd"
    lr: float = Field(0.01, gt=0)
    weight_decay: float = Field(0.0, ge=0)

    kernels: ClassVar[frozenset[str]] = frozenset({"compiled", "csr", "reference"})

    @property
    def state(self) -> str:
        """Return that nothing is kept."""
        return "reset"


AnyAdam = AdamOptions | AdamWOptions
OptimizerOptions = Annotated[AdamOptions | AdamWOptions | SgdOptions, Field(discriminator="name")]
OPTIMIZERS: dict[str, type[BaseModel]] = {"adam": AdamOptions, "adamw": AdamWOptions, "sgd": SgdOptions}
"""Option classes by name."""


class _Reduction(Options):
    buffers: Literal["host", "device"] = "host"
    """What MPI is handed: copies in host memory, or the device's own, which takes a GPU-aware MPI."""

    added: ClassVar[frozenset[str]] = frozenset({"buffers"})
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
    keys: Literal["run", "sum"] = "run"
    """Whether a client keeps its key pair for the run, or makes one for every sum."""


class SecAggOptions(_Secure):
    """SecAgg: the sums of "fixed32" under masks of all pairs of clients."""

    name: Literal["secagg"] = "secagg"
    threshold: float = Field(0.5, ge=0.5, lt=1)
    """More than this share of a group must stay to the end of a sum."""


class SecAggPlusOptions(_Secure):
    """SecAgg+: masks of neighbours in a random regular graph."""

    name: Literal["secagg+"] = "secagg+"
    threshold: float = Field(0.5, gt=0, lt=1)
    """More than this share of a client and its neighbours must stay to the end of a sum."""
    neighbours: int = Field(40, ge=2, multiple_of=2)
    """Neighbours of each client; in a group that has no more clients, all."""


class LightSecAggOptions(_Secure):
    """LightSecAgg: the sums of "fixed32" under one mask per client, in a field of 2^31 - 1 elements."""

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
    every: int = Field(1, ge=1, le=1_000_000)
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
    latency_ms: float = Field(20.0, ge=0)


def _classifies(values: Mapping[str, Any]) -> bool:
    """Return whether each graph of a case has one class, as most models' fast kernels need it."""
    try:
        return classifies(values.get("task", ""), values.get("dataset", DatasetOptions()).name)
    except BadInput:  # no name of a dataset: said when the case is checked
        return True


class Case(Options):
    """Everything that decides a run's results, and a little that decides its timings."""

    added: ClassVar[frozenset[str]] = frozenset(
        {"subnormals", "plugin", "task", "weights", "attack", "privacy"}
    )

    suite: str
    name: str
    plugin: dict[str, str] = Field({})
    """SHA-256 of the files outside of fedmpi that define parts of the case; the registry fills it."""
    rounds: int = Field(20, ge=1, le=1_000_000)
    seed: int = Field(0, ge=0, lt=2**63)
    dataset: SerializeAsAny[DatasetOptions] = DatasetOptions()
    partition: SerializeAsAny[PartitionOptions]
    task: str = ""
    """What is predicted; by default what the dataset's own labels are for."""
    model: SerializeAsAny[ModelOptions] = GinOptions()
    objective: SerializeAsAny[ObjectiveOptions] = SupervisedOptions()
    algorithm: SerializeAsAny[AlgorithmOptions]
    optimizer: OptimizerOptions = AdamOptions()
    reduction: ReductionOptions = ExactOptions()
    attack: Annotated[AttackOptions, Field(discriminator="name")] = NoAttack()
    privacy: Annotated[PrivacyOptions, Field(discriminator="name")] = NoPrivacy()
    share: Literal["conv", "all"] = "conv"
    weights: Literal["samples", "equal"] = "samples"
    """What a client counts in averages: its number of training examples, or 1."""
    participation: float = Field(1.0, gt=0, le=1)
    local_epochs: int = Field(1, ge=1, le=10_000)
    batch_size: int = Field(128, ge=1, le=10_000_000)
    evaluation: EvaluationOptions = EvaluationOptions()
    kernels: Literal["compiled", "grouped", "csr", "reference"] = "compiled"
    """By default "compiled" on one thread of a CPU, "grouped" on a GPU, where these can run model,
    objective, algorithm and optimizer; else torch's CSR products, "csr"."""
    group_size: int = Field(16, ge=1, le=4096)
    """Clients whose steps the kernels "grouped" take together."""
    device: Literal["cpu", "cuda"] = "cpu"
    threads: int = Field(1, ge=1, le=1024)
    subnormals: Literal["kept", "flushed"] = "kept"
    """Whether numbers below 1.2e-38 are kept or become 0. They come from weights and moments that nothing
    feeds any more; some processors take a hundred cycles for each operation on one."""
    checkpoint_seconds: float = Field(30.0, ge=0)
    watchdog_seconds: float = Field(1800.0, ge=0)
    """Silence after which a rank that stands still ends the run; 0: never. Not part of the configuration."""
    link: LinkOptions = LinkOptions()

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

        When a run is given up is no part of it, so that one that was can be continued with more patience.
        """
        unused = {"watchdog_seconds"} if self.kernels == "grouped" else {"watchdog_seconds", "group_size"}
        return self.model_dump(mode="json", exclude=unused)

    def digest(self) -> str:
        """Return the sha256 of the configuration, as the record has it."""
        return config_digest(self.config())
