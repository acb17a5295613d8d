"""Every path of the device kernels against the CPU: forward, gradients, and whole rounds."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fedmpi.benchmarks.federation import Prepared, deterministic, prepare
from fedmpi.benchmarks.gpu.kit import CHECKS, Request
from fedmpi.comm.start import load_world
from fedmpi.comm.world import World
from fedmpi.config import locations
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.registry.check import Checked, check_suite
from fedmpi.runs.signals import StopRequest

LIMITS = {"forward": 1e-5, "gradient": 1e-4, "rounds": 1e-2}
"""Largest difference that counts as rounding, as a share of the largest value of the CPU."""

_COUNTED = ("participated", "samples", "steps", "cluster", "model_flops", "evaluation_flops")
_MEASURED = ("train_loss", "val_loss", "test_loss", "delta_norm", "gradient_norm")
Floats = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]


def findings(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield for each case of `CHECKS` how far the device is from the kernels "csr" on the CPU.

    A difference is None where numbers that must be equal are not, or one is no number. A case that raises
    is a finding, too; the others go on.
    """
    world = load_world().World()
    for checked in check_suite(read(locations.find(CHECKS))):
        case = checked.case
        places = ({"device": "cpu", "kernels": "csr"}, {"device": request.device})
        first, second = (replace(checked, case=case.model_copy(update=place)) for place in places)
        labels = {"case": case.name, "kernels": case.kernels, "model": case.model.name}
        try:
            host = _run(first, request.source, world)
            found = compare(host, host if second == first else _run(second, request.source, world))
        except Exception as error:
            traceback.print_exc()
            yield {**labels, "agrees": False, "error": f"{type(error).__name__}: {error}"[:300]}
        else:
            agrees = all(found[name] <= most for name, most in LIMITS.items())
            shown = {name: value if np.isfinite(value) else None for name, value in found.items()}
            yield {**labels, **shown, "agrees": agrees}


def _run(checked: Checked, source: DataSource, world: World) -> Arrays:
    """Return what a case computes: held-out outcomes of the initial model, then its rounds."""
    prepared = prepare(checked, source, world)
    found = {"forward": _forward(prepared)}
    rounds, stop = [], StopRequest()
    with deterministic(True):
        for number in range(checked.case.rounds):
            _, report = prepared.rounds.run(number, stop=stop, checkpoint=False)
            assert report is not None
            rounds.append(report.results)
            if number == 0:
                found["gradient"] = _moments(prepared)
    for name in (*_COUNTED, *_MEASURED):
        if name in rounds[0]:
            found[name] = np.stack([each[name] for each in rounds])
    return found


def _forward(prepared: Prepared) -> Floats:
    """Return each held-out example's loss under the initial model, or without labels its vector."""
    values: list[Floats] = []
    everybody = set(prepared.rounds.clients)
    for group in prepared.groups:
        for found in group.evaluate(everybody)().values():
            values += [found.val.losses, found.test.losses]
            if found.vectors is not None:
                values.append(found.vectors.ravel().astype(np.float64))
    return np.concatenate(values)


def _moments(prepared: Prepared) -> Floats:
    """Return what the gradients of the first round left: Adam's means, else the clients' models."""
    kept = prepared.case.optimizer.state == "kept"
    clients = prepared.rounds.clients.values()
    rows = [each.adam.mean if kept else each.row for each in clients]
    return np.concatenate([row.cpu().numpy().astype(np.float64) for row in rows])


def compare(host: Arrays, device: Arrays) -> dict[str, float]:
    """Return the largest difference in the forward pass, in gradients and in whole rounds.

    Numbers that are counted must be equal: one that is not makes the rounds' difference infinite.
    """
    counted = all(np.array_equal(host[name], device[name]) for name in _COUNTED if name in host)
    measured = [_difference(host[name], device[name]) for name in _MEASURED if name in host]
    return {
        "forward": _difference(host["forward"], device["forward"]),
        "gradient": _difference(host["gradient"], device["gradient"]),
        "rounds": max(measured) if counted else np.inf,
    }


def _difference(host: npt.NDArray[Any], device: npt.NDArray[Any]) -> float:
    """Return the largest difference as a share of the host's largest value; infinite if one is no number."""
    if host.shape != device.shape or not np.array_equal(np.isfinite(host), np.isfinite(device)):
        return np.inf
    finite = np.isfinite(host)
    if not finite.any():
        return 0.0
    largest = np.abs(host[finite]).max()
    return float(np.abs(host[finite] - device[finite]).max() / max(largest, np.finfo(np.float32).tiny))
