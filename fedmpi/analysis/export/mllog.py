"""MLPerf's log lines: ``:::MLLOG`` and a JSON object each (mlcommons/logging).

Keys and their order are those of the HPC rules: a round is an epoch, `eval_accuracy` is the mean over clients
of the validation accuracy, on which targets are decided; runs judged by another metric have its name there
instead, such as `eval_rmse`. The log says `research` and `open`: it is in the
format of a submission, and none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from fedmpi.analysis.costs import round_ends
from fedmpi.analysis.scores import curve
from fedmpi.analysis.stored import hosts
from fedmpi.analysis.summary import setting
from fedmpi.clock import seconds_of
from fedmpi.store.reader import Run

Kind = Literal["INTERVAL_START", "INTERVAL_END", "POINT_IN_TIME"]


def lines(run: Run) -> Iterator[str]:
    """Yield the log of a run."""
    started = seconds_of(run.attempts[0].started) if run.attempts else 0.0
    for key, value in _description(run):
        yield _line(started, "POINT_IN_TIME", key, value)
    yield _line(started, "INTERVAL_START", "init_start")
    yield _line(started, "INTERVAL_END", "init_stop")
    yield _line(started, "INTERVAL_START", "run_start")
    evaluated, score = f"eval_{run.headline.name}", curve(run.results, run.headline, "val")
    begin, end = started, started
    seconds = run.measured("round_seconds") if run.attempts else np.zeros(0)
    for number, end in enumerate(round_ends(run)):
        begin = float(end) - float(seconds[number])
        epoch = {"epoch_num": number + 1}
        yield _line(begin, "INTERVAL_START", "epoch_start", **epoch)
        if not math.isnan(score[number]):
            yield _line(end, "INTERVAL_START", "eval_start", **epoch)
            yield _line(end, "POINT_IN_TIME", evaluated, float(score[number]), **epoch)
            yield _line(end, "INTERVAL_END", "eval_stop", **epoch)
        yield _line(end, "INTERVAL_END", "epoch_stop", **epoch)
    status = "success" if run.status == "complete" else "aborted"
    yield _line(end, "INTERVAL_END", "run_stop", status=status, fedmpi_status=run.status)


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
        ("cache_clear", True),
        ("seed", config.get("seed")),
        ("global_batch_size", config.get("batch_size")),
        ("train_samples", sizes[0]),
        ("eval_samples", sizes[1]),
        ("opt_name", optimizer.get("name")),
        ("opt_base_learning_rate", optimizer.get("lr")),
        ("opt_weight_decay", optimizer.get("weight_decay")),
        ("number_of_ranks", run.attempts[-1].ranks if run.attempts else 0),
        ("number_of_nodes", max(len(hosts(provenance)), 1)),
        ("accelerators_per_node", 0 if provenance.get("device", "cpu") == "cpu" else 1),
        ("fedmpi_clients", len(run.clients)),
        ("fedmpi_suite", config.get("suite")),
        ("fedmpi_case", config.get("name")),
        ("fedmpi_config_digest", run.config_digest),
        ("fedmpi_numerics_version", run.numerics_version),
    ]


def _line(time: float, kind: Kind, key: str, value: Any = None, **metadata: Any) -> str:
    body = {
        "namespace": "",
        "time_ms": round(1000 * time),
        "event_type": kind,
        "key": key,
        "value": value,
        "metadata": {"file": "fedmpi", "lineno": 0, **metadata},
    }
    return f":::MLLOG {json.dumps(body)}"
