import numpy as np
import pytest

from fedmpi.store.record import RunRecord
from fedmpi.store.schema import axis_sizes, blank_round, measurement_fields, result_fields
from tests.analysis.tasks import FIELDS, METRICS


@pytest.fixture
def make_run(monkeypatch):
    """Return a function that records a made-up run: test accuracies [round][client] and a seed.

    `settings` are added to its configuration; all its times are `slowness` times the usual ones.
    """

    def make(
        folder,
        accuracy,
        seed=10,
        status="complete",
        partition=None,
        correct=None,
        settings=None,
        ranks=2,
        slowness=1.0,
        numerics=None,
        provenance=None,
    ):
        clients = [f"client-{index}" for index in range(len(accuracy[0]))]
        config = {"dataset": {"name": "PROTEINS"}, "algorithm": "fedavg", "seed": seed, **(settings or {})}
        with monkeypatch.context() as patch:
            if numerics is not None:
                patch.setattr("fedmpi.store.record.NUMERICS_VERSION", numerics)
            record = RunRecord.create(
                folder,
                config=config,
                clients=clients,
                rounds=len(accuracy),
                partition=partition or {},
                extra=FIELDS["accuracy"],
            )
        with record:
            record.begin_attempt(0, ranks, ["Bcast"], provenance or {})
            for index, values in enumerate(accuracy):
                results, measurements = _rows(index, values, ranks)
                for name in ("round_seconds", "phase_seconds"):
                    measurements[name] = measurements[name] * slowness
                results["test_correct"] = np.array([] if correct is None else correct[index], np.uint8)
                record.write_round(index, results, measurements)
            record.finish(status, "" if status == "complete" else "made up")
        return folder

    return make


@pytest.fixture
def make_scored():
    """Return a function that records a run judged by `roc_auc` or `rmse`: a test score per round, or per task.

    Validation scores are the test scores unless `val` gives others; further scores are half of the headline's.
    """

    def make(
        folder,
        name,
        test,
        val=None,
        seed=1,
        names=("toxic",),
        settings=None,
        slowness=1.0,
        constant=None,
        partition=None,
    ):
        fields = [field for field in FIELDS[name] if "loss" not in field.name]
        config = {"dataset": {"name": "BBBP"}, "algorithm": "fedavg", "seed": seed, **(settings or {})}
        partition = {"task_names": np.array(names)} | (partition or {})
        if constant is not None:
            partition["constant_rmse"] = [constant]
        about = {"config": config, "clients": ["a", "b"], "rounds": len(test), "partition": partition}
        with RunRecord.create(folder, **about, extra=FIELDS[name], metrics=METRICS[name]) as record:
            record.begin_attempt(0, 2, ["Bcast"], {})
            for index, scores in enumerate(test):
                results, measurements = _rows(index, [np.nan, np.nan], fields=FIELDS[name])
                for part, values in (("test", scores), ("val", scores if val is None else val[index])):
                    results |= _scores(part, name, fields, np.broadcast_to(values, len(names)))
                measurements["round_seconds"] = measurements["round_seconds"] * slowness
                record.write_round(index, results, measurements)
            record.finish("complete", "")
        return folder

    return make


def _scores(part, headline, fields, by_task):
    found = {}
    for field in fields:
        if not field.name.removeprefix("client_").startswith(part):
            continue
        values = by_task if field.name.endswith(headline) else by_task / 2
        mean = float(np.nanmean(values)) if np.isfinite(values).any() else np.nan
        by_axes = {
            ("round",): np.array(mean),
            ("round", "task"): values,
            ("round", "client"): np.full(2, mean),
        }
        found[field.name] = by_axes[field.axes]
        if field.name.endswith("left_out"):
            found[field.name] = np.array(np.isnan(values).sum(), np.int32)
    return found


@pytest.fixture
def make_judged():
    """Return a function that records a complete run of any metrics: the results of each round by field."""

    def make(folder, metrics, fields, rounds, partition=None, settings=None):
        clients = ["a", "b"]
        config = {"dataset": {"name": "MADE-UP"}, "algorithm": "fedavg", "seed": 1, **(settings or {})}
        about = {"config": config, "clients": clients, "rounds": len(rounds), "partition": partition or {}}
        with RunRecord.create(folder, **about, extra=fields, metrics=metrics) as record:
            record.begin_attempt(0, 2, ["Bcast"], {})
            for index, found in enumerate(rounds):
                results, measurements = _rows(index, clients, fields=fields)
                results |= {name: np.asarray(values, results[name].dtype) for name, values in found.items()}
                record.write_round(index, results, measurements)
            record.finish("complete", "")
        return folder

    return make


@pytest.fixture
def make_rows():
    """Return a function that makes up one round's results and measurements, on some ranks."""
    return _rows


def _rows(index, values, ranks=2, fields=FIELDS["accuracy"]):
    sizes = axis_sizes(len(values), ranks, 1, tasks=1)
    results = blank_round(result_fields(fields), sizes)
    results["participated"][:] = 1
    if "val_loss" in results:
        results["val_loss"][:] = 1.0
    if "test_accuracy" in results:
        results["test_accuracy"][:] = values
        results["val_accuracy"][:] = values
    results["client_bytes_up"][:] = 1_000_000
    results["client_bytes_down"][:] = 500_000
    results["model_flops"][:] = 2_000_000_000
    measurements = blank_round(measurement_fields(), sizes)
    measurements["round_seconds"][()] = 1.0 + index
    measurements["virtual_seconds"][()] = 10.0
    measurements["phase_seconds"][:] = [[0.5] * 6, *[[0.25] * 6] * (ranks - 1)]
    measurements["collective_bytes"][:] = 3_000_000
    measurements["executed_flops"][:] = 1_500_000_000
    return results, measurements
