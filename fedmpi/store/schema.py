"""Vocabulary of the record: every recorded quantity with its axes, type, unit and meaning."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Better = Literal["higher", "lower"] | None

SCHEMA_VERSION = 4
STATUSES = ("running", "complete", "interrupted", "diverged", "failed")
PHASES = ("train", "evaluate", "wait", "communicate", "server", "record")

MOST = {"s": 1e9, "B": 1e18, "FLOP": 1e18, "J": 1e15}
"""Largest measurement of one round by unit: 30 years, an exabyte, an hour of a machine of 300 TFLOP/s, 30
years at a megawatt."""


def is_whole(config: Mapping[str, Any], completed: int, rounds: int) -> bool:
    """Return whether a run may be complete after so many of its rounds: with patience it may end early."""
    evaluation = config.get("evaluation")
    patience = evaluation.get("patience", 0) if isinstance(evaluation, Mapping) else 0
    return completed == rounds or (bool(patience) and 0 < completed < rounds)


@dataclass(frozen=True)
class Field:
    """One recorded quantity.

    Attributes
    ----------
    name : str
        Name of its dataset.
    axes : tuple of str
        Of "round", "client", "rank", "phase", "collective", "example" (the test examples of all clients),
        "task" (the label columns); the first is always "round".
    dtype : str
        NumPy type code. Unwritten floats are NaN, unwritten integers 0.
    unit, meaning : str
        For the reader; stored as attributes.
    kind : "result" or "measurement"
        A result is the same on every machine layout, bit for bit; a measurement is not.
    better : "higher", "lower" or None
        Which direction is an improvement, where there is one.
    """

    name: str
    axes: tuple[str, ...]
    dtype: str
    unit: str
    meaning: str
    kind: Literal["result", "measurement"]
    better: Better = None

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape of one round's row."""
        return tuple(sizes[axis] for axis in self.axes[1:])

    def blank(self, shape: tuple[int, ...]) -> Array:
        """Return an array of this field's type filled with "not written" (NaN or 0)."""
        return np.full(shape, np.nan if self.dtype.startswith("f") else 0, dtype=self.dtype)

    def check(self, values: Array) -> None:
        """Refuse times and sizes that no run measures; NaN is "not written".

        Raises
        ------
        ValueError
            Some are negative, or beyond `MOST`.
        """
        most = MOST.get(self.unit) if self.kind == "measurement" else None
        if most is not None and bool(((values < 0) | (values > most)).any()):
            raise ValueError(f"{self.name} is not between 0 and {most:g} {self.unit}")

    def row(self, value: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
        """Return `value` as one round's row; the cast must change neither shape nor numbers."""
        given = np.asarray(value)
        cast = given.astype(self.dtype)
        assert given.shape == shape, f"{self.name}: shape {given.shape}, expected {shape}"
        same = given.dtype == cast.dtype or np.array_equal(given, cast, equal_nan=given.dtype.kind == "f")
        assert same, f"{self.name}: {given.dtype} values do not fit {self.dtype}"
        return cast


def _result(name: str, dtype: str, unit: str, meaning: str, better: Better = None) -> Field:
    return Field(name, ("round", "client"), dtype, unit, meaning, "result", better)


RESULTS = (
    _result("participated", "u1", "1", "1 if the client trained in this round"),
    _result("group", "i4", "1", "group (cluster) of the client after this round"),
    _result("samples", "i8", "example", "training examples seen in this round, counted once per local epoch"),
    _result("steps", "i4", "1", "optimizer steps of this round"),
    _result("delta_norm", "f8", "1", "2-norm of the shared slice's update"),
    _result(
        "gradient_norm",
        "f8",
        "1",
        "2-norm of the shared slice's raw gradient of the objective in the last batch, "
        "before Adam, without weight decay and penalty",
    ),
    _result("model_flops", "i8", "FLOP", "analytic training work of the model", "lower"),
    _result("evaluation_flops", "i8", "FLOP", "analytic evaluation work of the model", "lower"),
    _result("client_bytes_up", "i8", "B", "payload the client sends: float32 or compressed", "lower"),
    _result("client_bytes_down", "i8", "B", "payload the client gets: likewise", "lower"),
    _result("parameter_digest", "u8", "1", "hash of the client's whole parameter vector after the round"),
)
"""What every run has by client; losses and scores are its task's."""


CLIENT_ID = _result(
    "client_id", "i8", "1", "number in the population of the client that had this place in the round"
)
"""What runs with a population record beside."""

VIRTUAL_CLOCK = Field(
    "virtual_clock",
    ("round",),
    "f8",
    "s",
    "time of the clients' devices at the end of the step",
    "result",
    "lower",
)
DEVICE_SECONDS = _result(
    "device_seconds", "f8", "s", "virtual time for which the client was at work on what ended in the step"
)
STALENESS = _result(
    "staleness",
    "i4",
    "1",
    "steps between the model that the update starts from and the one that it changes; -1: no update",
)
WASTED_FLOPS = _result("wasted_flops", "i8", "FLOP", "training of updates that were not used", "lower")
"""What runs with a virtual clock record beside."""

GENERATED_NODES = _result(
    "generated_nodes",
    "i8",
    "1",
    "nodes that the client generated before the first round and added to its part of the graph",
)
"""What runs with mended parts record beside."""


GOSSIP = (
    _result("degree", "i4", "1", "clients whose models the client gets in a round in which all take part"),
    Field(
        "spectral_gap", ("round",), "f8", "1", "1 - |lambda_2| of the mixing weights W", "result", "higher"
    ),
    Field(
        "consensus_distance",
        ("round",),
        "f8",
        "1",
        "mean over clients of the squared 2-norm of the model's shared part less the mean of all",
        "result",
        "lower",
    ),
)
"""What runs without a server record beside, with the scores of the mean model."""

MEAN_MODEL = "mean_model_"
"""Begin of the names of these scores."""


def training_loss(unit: str) -> Field:
    """Return the field of the training loss."""
    return _result("train_loss", "f8", unit, "running mean of the loss over the round's batches", "lower")


def held_out_losses(unit: str) -> tuple[Field, ...]:
    """Return the fields of the losses on held-out examples."""
    return tuple(
        _result(f"{part}_loss", "f8", unit, f"{name} loss of the new model", "lower")
        for part, name in (("val", "validation"), ("test", "test"))
    )


def _measured(name: str, axes: str, dtype: str, unit: str, meaning: str) -> Field:
    return Field(name, ("round", *axes.split()), dtype, unit, meaning, "measurement", "lower")


MEASUREMENTS: tuple[Field, ...] = (
    _measured("client_wall_seconds", "client", "f8", "s", "wall-clock time of the client's local training"),
    _measured("client_cpu_seconds", "client", "f8", "s", "CPU time of the client's local training"),
    _measured("phase_seconds", "rank phase", "f8", "s", "wall-clock time of each rank in each phase"),
    _measured("executed_flops", "rank", "i8", "FLOP", "what the chosen kernels did on each rank"),
    _measured("collective_calls", "rank collective", "i8", "1", "calls of each collective"),
    _measured("collective_bytes", "rank collective", "i8", "B", "payload each rank hands to or gets from it"),
    _measured("collective_seconds", "rank collective", "f8", "s", "wall-clock time inside the collective"),
    _measured("cpu_seconds", "rank", "f8", "s", "CPU time of each rank, all threads"),
    _measured("peak_host_bytes", "rank", "i8", "B", "largest resident memory of each rank so far"),
    _measured("peak_device_bytes", "rank", "i8", "B", "largest device memory of each rank so far"),
    _measured(
        "round_seconds",
        "",
        "f8",
        "s",
        "wall-clock time on rank 0 from the end of the round before to the end of this one",
    ),
    _measured("virtual_seconds", "", "f8", "s", "virtual federated time: slowest client and link"),
)


HOST_ENERGY = (
    _measured("host_joules", "rank", "f8", "J", "energy of the processors and memory of the rank's node"),
    _measured("phase_joules", "rank phase", "f8", "J", "the same while the rank was in each phase"),
)
DEVICE_ENERGY = (_measured("device_joules", "rank", "f8", "J", "energy of the GPUs of the rank's node"),)
"""Measurements of runs that found counters of energy when they began; NaN on ranks that do not read them."""

SECURE_STEPS = {
    "keys": "making and relaying the clients' key pairs; those of the run are in its first round",
    "shares": "agreeing on secrets, sharing them and delivering the shares",
    "masks": "quantising updates and adding masks to them",
    "upload": "summing the masked updates at rank 0",
    "recovery": "answers of the clients, and lifting the masks at rank 0",
}
"""Parts of a secure sum by name, with their meaning; they lie inside the phase "communicate"."""


def secure_fields() -> tuple[Field, ...]:
    """Return the measurements that runs with a secure reduction have beside the others."""
    kinds = (("seconds", "f8", "s", "wall-clock time"), ("bytes", "i8", "B", "payload of the collectives"))
    return tuple(
        _measured(f"{name}_{ending}", "rank", dtype, unit, f"{what} of {text}")
        for ending, dtype, unit, what in kinds
        for name, text in SECURE_STEPS.items()
    )


def result_fields(extra: Iterable[Field] = ()) -> dict[str, Field]:
    """Return the result fields of a run by name, its extra ones included."""
    return {field.name: field for field in (*RESULTS, *extra) if field.kind == "result"}


def measurement_fields(extra: Iterable[Field] = ()) -> dict[str, Field]:
    """Return the measurement fields of a run by name, its extra ones included."""
    return {field.name: field for field in (*MEASUREMENTS, *extra) if field.kind == "measurement"}


_NOTHING: Mapping[str, Any] = {}


def axis_sizes(
    clients: int, ranks: int = 0, collectives: int = 0, partition: Mapping[str, Any] = _NOTHING
) -> dict[str, int]:
    """Return the length of each axis of a round's row.

    Parameters
    ----------
    clients, ranks : int
        Of the run; 0 for ranks where no measurement is meant.
    collectives : int
        Number of collectives that are counted.
    partition : mapping
        Where it has them: pointers into the test examples of all clients, and names of label columns.
    """
    return {
        "task": len(partition["task_names"]) if "task_names" in partition else 0,
        "client": clients,
        "rank": ranks,
        "phase": len(PHASES),
        "collective": collectives,
        "example": int(partition["test_ptr"][-1]) if "test_ptr" in partition else 0,
    }


def blank_round(fields: Mapping[str, Field], sizes: Mapping[str, int]) -> dict[str, Array]:
    """Return one round's rows, nothing written yet (NaN or 0), to be filled by the caller."""
    return {name: field.blank(field.shape(sizes)) for name, field in fields.items()}


def canonical_json(value: Mapping[str, Any]) -> str:
    """Return JSON text that depends on the content only: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def config_digest(config: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the configuration's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(config).encode()).hexdigest()


def config_differences(first: Mapping[str, Any], second: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return one line ``key: first -> second`` for each setting that differs."""
    lines: list[str] = []
    for name in sorted({*first, *second}):
        left, right = first.get(name, "(not set)"), second.get(name, "(not set)")
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            lines += config_differences(left, right, f"{prefix}{name}.")
        elif left != right:
            lines.append(f"{prefix}{name}: {left} -> {right}")
    return lines


PREPARATION_SECONDS = "preparation_seconds"
"""Of what clients do before round 1."""


def preparation_seconds(provenance: Mapping[str, Any]) -> float | None:
    """Return the seconds before round 1; None without such a phase."""
    before = provenance.get("mending_seconds")  # as old records have it
    found = provenance.get(PREPARATION_SECONDS, before)
    return None if found is None else float(found)
