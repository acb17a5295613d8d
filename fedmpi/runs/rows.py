"""The record's rows of a round, from what rank 0 gathered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.case.schema import LinkOptions
from fedmpi.client.training import LOSS_UNIT
from fedmpi.exchange.messages import Floats, Gathered, Ints
from fedmpi.store.schema import Field

Rows = dict[str, npt.NDArray[Any]]


def results(
    training: Gathered, closing: Gathered, group: Ints, participants: Ints, traffic: tuple[int, int]
) -> Rows:
    """Return the results that every algorithm has.

    Parameters
    ----------
    training, closing : Gathered
        The training and the evaluation table, without what it holds of single graphs.
    group : int64 [clients]
        Group of each client after the round.
    participants : int64 [k]
    traffic : (int, int)
        Bytes that a participant sends, and gets.
    """
    took_part = np.zeros(len(group), bool)
    took_part[participants] = True
    rows: Rows = {
        "participated": took_part.astype(np.uint8),
        "group": group.astype(np.int32),
        "client_bytes_up": took_part * np.int64(traffic[0]),
        "client_bytes_down": took_part * np.int64(traffic[1]),
        "parameter_digest": _join(closing["digest_high"], closing["digest_low"]),
        "evaluation_flops": _counts(closing["evaluation_flops"]),
    }
    for field in ("samples", "steps", "model_flops"):
        rows[field] = _counts(training[field])
    for field in ("delta_norm", "gradient_norm"):
        rows[field] = training[field]
    return rows


def by_client(fields: Sequence[Field], training: Gathered, closing: Gathered) -> Rows:
    """Return the losses and accuracies that travel by client, of those that the task records."""
    wanted = [field.name for field in fields]
    return {name: table[name] for table in (training, closing) for name in wanted if name in table.columns}


def together(training: Sequence[int] | None, closing: Sequence[int] | None) -> Rows:
    """Return mean losses and accuracies over the examples of all clients; NaN where there is no sum.

    Parameters
    ----------
    training : sequence of int or None
        Examples, losses, right predictions, summed over participants.
    closing : sequence of int or None
        The same of validation and test, each figure of both parts together.
    """
    found = {"train": training or (0, 0, 0)}
    val, test = np.reshape(closing or (0,) * 6, (3, 2)).T.tolist()
    rows: Rows = {}
    for part, (count, losses, hits) in (found | {"val": val, "test": test}).items():
        rows[f"{part}_loss"] = np.array(losses * LOSS_UNIT / count if count else np.nan)
        rows[f"{part}_accuracy"] = np.array(hits / count if count else np.nan)
    return rows


def measurements(training: Gathered, link: LinkOptions, traffic: tuple[int, int]) -> Rows:
    """Return the measurements that the training table holds."""
    return {
        "client_wall_seconds": training["wall_s"],
        "client_cpu_seconds": training["cpu_s"],
        "virtual_seconds": np.array(_virtual_seconds(training["cpu_s"], link, sum(traffic))),
    }


def _virtual_seconds(cpu_s: Floats, link: LinkOptions, num_bytes: int) -> float:
    """Return what the round would take if each client had a machine and the stated link."""
    travel = num_bytes * 8 / (link.megabits * 1e6) + (2e-3 * link.latency_ms if num_bytes else 0.0)
    return float(np.nanmax(cpu_s)) + travel if np.isfinite(cpu_s).any() else np.nan


def _counts(values: Floats) -> Ints:
    """Return counts as integers; 0 for NaN."""
    return np.where(np.isnan(values), 0.0, values).astype(np.int64)


def _join(high: Floats, low: Floats) -> npt.NDArray[np.uint64]:
    return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
