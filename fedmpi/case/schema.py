"""One case of a suite, checked and frozen (imports without torch)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SerializeAsAny, ValidationInfo, model_validator

from fedmpi.algorithms.base import AlgorithmOptions
from fedmpi.case.attacks import AttackOptions, NoAttack
from fedmpi.case.initial import InitialOptions
from fedmpi.case.optimizers import AdamOptions, OptimizerOptions
from fedmpi.case.privacy import NoPrivacy, PrivacyOptions
from fedmpi.case.reductions import ExactOptions, ReductionOptions
from fedmpi.compression.none import NoCompression
from fedmpi.compression.options import Compression
from fedmpi.config.options import Options
from fedmpi.datasets.options import DatasetOptions
from fedmpi.devices.options import DevicesOptions, NoDevices
from fedmpi.errors import BadInput
from fedmpi.models.options import GinOptions, ModelOptions
from fedmpi.objectives.options import ObjectiveOptions, SupervisedOptions
from fedmpi.partition.options import PartitionOptions
from fedmpi.schedules.options import Schedule
from fedmpi.schedules.synchronous import SynchronousOptions
from fedmpi.store.schema import config_digest
from fedmpi.tasks.known import classifies
from fedmpi.topologies.options import Topology
from fedmpi.topologies.server import ServerOptions

Misfits = Iterator[tuple[str, str]]
"""Settings, dotted, that cannot be with the others of a case, each with what to do. Whoever asks for them
stops at the first, so that a check need not hold for what an earlier one refuses."""


class EvaluationOptions(Options):
    """Which clients are evaluated on the new models, and how often (the last round always)."""

    clients: Literal["all", "participants"] = "all"
    """Which clients evaluate the new models: all, or those that trained in the round."""
    every: int = Field(1, ge=1, le=1_000_000)
    """Rounds from one evaluation to the next; the last round is always evaluated."""
    patience: int = Field(0, ge=0, le=1_000_000)
    """Rounds without a better mean validation score after which the run ends, with the round that is then
    under way; 0: after all rounds."""
    embeddings: tuple[int, ...] = Field((), strict=False)
    """Rounds, from 1, whose vectors of all graphs are kept beside the record; unsupervised only."""
    probe: bool = False
    """Whether a linear classifier is trained on the embeddings too; unsupervised objectives only."""
    vectors: Literal["raw", "unit"] = "raw"
    """Whether vectors are divided by their 2-norm before they are clustered; unsupervised objectives only."""

    added: ClassVar[frozenset[str]] = frozenset({"patience", "embeddings", "probe", "vectors"})


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
        {"subnormals", "plugin", "task", "weights", "record", "attack", "privacy", "public"}
        | {"compression", "down_compression", "topology", "schedule", "devices", "keep", "initial"}
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
    initial: InitialOptions = InitialOptions()
    """What models start from in place of drawn numbers."""
    objective: SerializeAsAny[ObjectiveOptions] = SupervisedOptions()
    """What a client minimises."""
    algorithm: SerializeAsAny[AlgorithmOptions]
    """How clients train together."""
    optimizer: OptimizerOptions = AdamOptions()
    """Takes the clients' local steps."""
    reduction: ReductionOptions = ExactOptions()
    """How updates are summed."""
    compression: Compression = NoCompression()
    """What travels of a client's update."""
    down_compression: Compression = NoCompression()
    """What travels of the change of a model on its way to the clients, which hold replicas."""
    topology: Topology = ServerOptions()
    """Who averages with whom: all by a server, or clients with those that they hear."""
    schedule: Schedule = SynchronousOptions()
    """Whose updates a step of the server uses, and of which models; a round is a step."""
    devices: DevicesOptions = NoDevices()
    """What clients compute and communicate with, for the virtual clock."""
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
    public: float = Field(0.0, ge=0, lt=1)
    """Share of each client's training graphs that it gives to all: no client trains on their labels, and an
    algorithm may exchange the models' outputs for them."""
    participation: float = Field(1.0, gt=0, le=1)
    """Share of the clients that train in a round."""
    local_epochs: int = Field(1, ge=1, le=10_000)
    """Passes of a client over its training examples in a round."""
    batch_size: int = Field(128, ge=1, le=10_000_000)
    """Graphs of a local step at most."""
    evaluation: EvaluationOptions = EvaluationOptions()
    """Which clients are evaluated, how often, and on what."""
    kernels: Literal["compiled", "grouped", "csr", "reference"] = "compiled"
    """By default "compiled" on one thread of a CPU, where graphs have one class each and with FedGraphNN's
    models, and "grouped" on a GPU, where these can run model, objective, task and algorithm; else torch's CSR
    products, "csr"."""
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
    keep: Literal["last", "best"] = "last"
    """Which models checkpoints have for `fedmpi.load_model`: the last round's, or beside them each client's
    of its best round by validation accuracy."""
    watchdog_seconds: float = Field(1800.0, ge=0)
    """Silence after which a rank that stands still ends the run; 0: never. Not part of the configuration."""
    track: Literal["none", "tensorboard", "mlflow", "wandb"] = "none"
    """A tracker that rank 0 tells of each round, beside the record. Not part of the configuration."""
    link: LinkOptions = LinkOptions()
    """The clients' link, for virtual seconds; no result depends on it."""

    @model_validator(mode="before")
    @classmethod
    def _choose_kernels(cls, values: Any, info: ValidationInfo) -> Any:
        """Choose kernels that can run everything; the context names those that algorithm and task can use."""
        alone = "compiled" if values.get("threads", 1) == 1 else "csr"
        wanted = "grouped" if values.get("device") == "cuda" else alone
        model: ModelOptions = values.get("model", GinOptions())
        able = model.defaults & (info.context or {}).get("kernels", model.kernels)
        able &= getattr(values.get("objective"), "kernels", able)
        for_labels = wanted == "grouped" or model.any_task or _classifies(values)
        if wanted not in able or not for_labels:
            wanted = "csr"
        return {"kernels": wanted, **values}

    def config(self) -> dict[str, Any]:
        """Return the resolved configuration as plain data, as it is stored in the record.

        When a run is given up is no part of it, so that one that was can be continued with more patience;
        nor is where its clients live, what stays of its checkpoints, nor who is told of its rounds.
        """
        unused = {"watchdog_seconds", "server", "checkpoints", "track"}
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
