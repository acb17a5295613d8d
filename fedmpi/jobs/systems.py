"""What is known of a machine: one TOML file per system, checked against the classes below.

The descriptions of the fields are the documentation: ``fedmpi jobs systems --fields`` prints them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

import fedmpi
from fedmpi.config.documents import load_toml
from fedmpi.config.tables import closest
from fedmpi.errors import BadInput
from fedmpi.registry.check import explain

_PACKAGE = Path(fedmpi.__file__).parent
_ROOTS = (_PACKAGE / "job_scripts", _PACKAGE.parent / "jobs")
"""Where job scripts, templates and systems are: in the installed package, or in the checkout."""

_ENVIRONMENT_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
GPUS = "{gpus}"
"""Stands in `Node.gpu_option` for the number of GPUs."""
_BRACES = re.compile(r"[{}]")
_OPTION = re.compile(r"--?[A-Za-z]")

Line = Annotated[str, StringConstraints(pattern=r"^[^\n\r]*$")]
"""Text that stays on its line of a script."""

Memory = Annotated[str, StringConstraints(pattern=r"^([1-9][0-9]{0,8}[MG])?$")]


class _Table(BaseModel):
    """Values are of the field's own type; only lists are taken for tuples, which TOML does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)


class Request(_Table):
    """What is asked of sbatch; what is empty is not asked for, and the cluster's default holds."""

    partition: Line = Field("", description="partition (queue)")
    account: Line = Field("", description="account that is charged")
    qos: Line = Field("", description="quality of service")
    constraint: Line = Field("", description="node features")
    memory_per_rank: Memory = Field("", description="memory of a rank with its threads, such as 2G")
    options: tuple[Line, ...] = Field(
        (), strict=False, description="further options of sbatch as they stand, such as --exclusive"
    )


class Node(_Table):
    """One node of the partition."""

    cores: int = Field(ge=1, le=4096, description="cores that ranks may use")
    gpus: int = Field(0, ge=0, le=64, description="GPUs; 0 where there are none")
    gpu_option: Line = Field(
        "--gpus-per-node={gpus}",
        description="option of sbatch for GPUs, {gpus} the number per node; each rank of a node must see "
        "all of them, so never --gpus-per-task",
    )


class Launch(_Table):
    """How ranks start."""

    scheduler: Literal["slurm", "none"] = Field("slurm", description='"none": no queue, cases run by a sweep')
    command: Line = Field(
        "srun -K0 -W15 --mpi=pmi2", min_length=1, description="launcher with its options, before the program"
    )
    setup: tuple[Line, ...] = Field(
        (), strict=False, description="lines of bash before the launch, such as module load"
    )
    environment: dict[Annotated[str, StringConstraints(pattern=f"^{_ENVIRONMENT_NAME}$")], Line] = Field(
        {}, description="variables that every rank gets"
    )
    container: Line = Field("", description="container command with image, put before fedmpi; empty: none")


class Data(_Table):
    """Where prepared datasets are."""

    shared: Line = Field(
        "", description="folder of prepared data that all nodes see; empty: FEDMPI_DATA of who submits"
    )
    local: Line = Field(
        "",
        description="folder on each node's own disk, into which one rank per node copies the suite's "
        "datasets first; empty: read from the shared folder",
    )


class Limits(_Table):
    """What a job may ask for; plans are checked against it."""

    minutes: int = Field(ge=2, le=525_600, description="longest time limit of a job")
    nodes: int = Field(1, ge=1, description="most nodes of a job")
    tasks: int = Field(1000, ge=1, description="most tasks of an array (MaxArraySize minus one)")
    at_once: int = Field(8, ge=1, description="tasks of an array that run at the same time")
    requeues: int = Field(5, ge=0, le=1000, description="how often a job that ran out of time is continued")


class Model(_Table):
    """The stated model of time, for cases of which there is no record."""

    gflops: float = Field(
        40.0,
        ge=1e-3,
        le=1e9,
        description="10^9 model FLOP (docs/metrics.md) per second that a rank trains with",
    )
    round_seconds: float = Field(
        0.01, ge=0, le=86_400, description="seconds a round takes beside the training"
    )
    start_seconds: float = Field(
        20.0, ge=0, le=86_400, description="seconds from a case's launch to its first round"
    )


class System(_Table):
    """One machine."""

    description: Line = Field(min_length=1, description="what machine this is, in one line")
    source: Line = Field("", description="where the figures are from")
    request: Request = Request()
    node: Node
    launch: Launch = Launch()
    data: Data = Data()
    limits: Limits
    model: Model = Model()


def folder(name: str) -> Path:
    """Return ``systems`` or ``templates`` of what travels with the package."""
    return next(path for root in _ROOTS if (path := root / name).is_dir())


def known() -> dict[str, Path]:
    """Return the systems that come with fedmpi by name."""
    return {path.stem: path for path in sorted(folder("systems").glob("*.toml"))}


def load(name: str) -> System:
    """Read a system: a bundled one, or a file of yours.

    Raises
    ------
    BadInput
        There is no such system, or its file does not fit the schema.
    """
    path = Path(name) if name.endswith(".toml") else known().get(name)
    if path is None or not path.is_file():
        listed = ", ".join(known())
        raise BadInput(
            f"--system {name}: no such system{closest(name, known())} (known: {listed}; or a file)"
        )
    try:
        system = System.model_validate(load_toml(path, "system"))
    except ValidationError as error:
        detail = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        key = ".".join(map(str, detail["loc"]))
        raise BadInput(f"{path}: {key}: {explain(System, detail, key)}") from error
    for option in (*system.request.options, system.node.gpu_option):
        if not _OPTION.match(option):
            raise BadInput(f"{path}: {option!r} is no option of sbatch: it begins with a dash")
    if _BRACES.search(system.node.gpu_option.replace(GPUS, "")):
        raise BadInput(f"{path}: node.gpu_option: {system.node.gpu_option!r}: in braces stands {GPUS} alone")
    return system


def fields(table: type[BaseModel] = System, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield dotted name, default and meaning of every field of a system file."""
    for name, field in table.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from fields(kind, f"{prefix}{name}.")
            continue
        default = "required" if field.is_required() else _shown(field.default)
        yield f"{prefix}{name}", default, str(field.description)


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else "[]" if value == () else str(value)
