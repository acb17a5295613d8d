"""MLPerf's log lines: ``:::MLLOG`` and a JSON object each (mlcommons/logging).

Keys and their order are those of the HPC rules: a round is an epoch, `eval_accuracy` is the mean over clients
of the validation accuracy, on which targets are decided; runs judged by another metric have its name there
instead, such as `eval_rmse`. The log says `research` and `open`: it is in the
format of a submission, and none.

What a record does not hold is not claimed. Start-up is not timed, so `init_start` and `init_stop` have one
time and say `measured: false`. `eval_start` is as long before the end of the round as the slowest rank
evaluated. There is no `global_batch_size`, because clients step on their own.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from fedmpi.analysis.costs import evaluation_seconds, round_ends
from fedmpi.analysis.scores import curve
from fedmpi.analysis.stored import hosts
from fedmpi.analysis.summary import setting
from fedmpi.clock import seconds_of
from fedmpi.store.reader import Run
from fedmpi.store.schema import Array

Kind = Literal["INTERVAL_START", "INTERVAL_END", "POINT_IN_TIME"]


def lines(run: Run) -> Iterator[str]:
    """Yield the log of a run."""
    started = seconds_of(run.attempts[0].started) if run.attempts else 0.0
    ends = round_ends(run)
    seconds = run.measured("round_seconds") if run.attempts else np.zeros(0)
    begins = ends - seconds
    started = min([started, *begins])  # a phase before the rounds belongs to the first
    for key, value in _description(run):
        yield _line(started, "POINT_IN_TIME", key, value)
    yield _line(started, "INTERVAL_START", "init_start", measured=False)
    yield _line(started, "INTERVAL_END", "init_stop", measured=False)
    yield _line(started, "INTERVAL_START", "run_start")
    yield from _epochs(run, begins, ends)
    status = "success" if run.status == "complete" else "aborted"
    end = max([started, *ends])
    yield _line(end, "INTERVAL_END", "run_stop", status=status, fedmpi_status=run.status)


def _epochs(run: Run, begins: Array, ends: Array) -> Iterator[str]:
    """Yield the lines of the rounds."""
    evaluated, score = f"eval_{run.headline.name}", curve(run.results, run.headline, "val")
    evaluating = np.maximum(ends - evaluation_seconds(run), begins)
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        epoch = {"epoch_num": number + 1}
        yield _line(begin, "INTERVAL_START", "epoch_start", **epoch)
        if not math.isnan(score[number]):
            yield _line(evaluating[number], "INTERVAL_START", "eval_start", **epoch)
            yield _line(end, "POINT_IN_TIME", evaluated, float(score[number]), **epoch)
            yield _line(end, "INTERVAL_END", "eval_stop", **epoch)
        yield _line(end, "INTERVAL_END", "epoch_stop", **epoch)


def _description(run: Run) -> list[tuple[str, Any]]:
    config = run.config
    provenance = run.attempts[-1].provenance if run.attempts else {}
    sizes = run.partition["sizes"].sum(axis=0).tolist() if "sizes" in run.partition else [0, 0, 0]
    optimizer = config.get("optimizer", {})
    return [
        ("submission_benchmark", f"fedmpi/{setting(config, 'algorithm')}/{setting(config, 'dataset')}"),
        ("submission_org", "none"),
        ("submission_division", "open"),
        ("submission_status", "research"),
        ("submission_platform", str(provenance.get("cpu_model") or "unknown")),
        ("cache_clear", False),
        ("seed", config.get("seed")),
        ("train_samples", sizes[0]),
        ("eval_samples", sizes[1]),
        ("opt_name", optimizer.get("name")),
        ("opt_base_learning_rate", optimizer.get("lr")),
        ("opt_weight_decay", optimizer.get("weight_decay")),
        ("number_of_ranks", run.attempts[-1].ranks if run.attempts else 0),
        ("number_of_nodes", max(len(hosts(provenance)), 1)),
        ("accelerators_per_node", _accelerators(provenance)),
        ("fedmpi_clients", len(run.clients)),
        ("fedmpi_client_batch_size", config.get("batch_size")),
        ("fedmpi_suite", config.get("suite")),
        ("fedmpi_case", config.get("name")),
        ("fedmpi_config_digest", run.config_digest),
        ("fedmpi_numerics_version", run.numerics_version),
    ]


def _accelerators(provenance: Mapping[str, Any]) -> int:
    """Return how many GPUs ranks use on the node with the most of them; 1 where no rank says which."""
    ranks = provenance.get("mpi", {}).get("ranks", [])
    devices = {(str(rank.get("host")), str(rank.get("device", "cpu"))) for rank in ranks}
    used = Counter(host for host, device in devices if device != "cpu")
    return max(used.values(), default=int(provenance.get("device", "cpu") != "cpu"))


def _line(time: float, kind: Kind, key: str, value: Any = None, **metadata: Any) -> str:
    body = {"namespace": "", "time_ms": round(1000 * time), "event_type": kind, "key": key, "value": value}
    body["metadata"] = {"file": "fedmpi", "lineno": 0, **metadata}
    return f":::MLLOG {json.dumps(body)}"
