import numpy as np
import pytest

from tests.analysis.tasks import FIELDS, METRICS, blank, recorded


@pytest.fixture
def make_run(monkeypatch):
    """Return a function that records a made-up run: test accuracies [round][client] and a seed.

    `settings` are added to its configuration; all its times are `slowness` times the usual ones; `about` is
    that of `recorded`.
    """

    def make(folder, accuracy, seed=10, correct=None, settings=None, slowness=1.0, numerics=None, **about):
        clients = [f"client-{index}" for index in range(len(accuracy[0]))]
        config = {"dataset": {"name": "PROTEINS"}, "algorithm": "fedavg", "seed": seed, **(settings or {})}
        rounds = [_rows(index, values, about.get("ranks", 2)) for index, values in enumerate(accuracy)]
        for index, (results, measurements) in enumerate(rounds):
            for name in ("round_seconds", "phase_seconds"):
                measurements[name] = measurements[name] * slowness
            results["test_correct"] = np.array([] if correct is None else correct[index], np.uint8)
        with monkeypatch.context() as patch:
            if numerics is not None:
                patch.setattr("fedmpi.store.record.NUMERICS_VERSION", numerics)
            return recorded(folder, config, clients, rounds, **about)

    return make


@pytest.fixture
def make_scored():
    """Return a function that records a run judged by `roc_auc` or `rmse`: a test score per round, or per task.

    Validation scores are the test scores unless `val` gives others; further scores are half of the headline's.
    """

    def make(
        folder, name, test, val=None, seed=1, names=("toxic",), settings=None, constant=None, partition=None
    ):
        fields = [field for field in FIELDS[name] if "loss" not in field.name]
        config = {"dataset": {"name": "BBBP"}, "algorithm": "fedavg", "seed": seed, **(settings or {})}
        partition = {"task_names": np.array(names)} | (partition or {})
        if constant is not None:
            partition["constant_rmse"] = [constant]
        rounds = [_rows(index, [np.nan, np.nan], fields=FIELDS[name]) for index in range(len(test))]
        for index, (results, _) in enumerate(rounds):
            for part, scores in (("test", test), ("val", test if val is None else val)):
                results |= _scores(part, name, fields, np.broadcast_to(scores[index], len(names)))
        about = {"partition": partition, "extra": FIELDS[name], "metrics": METRICS[name]}
        return recorded(folder, config, ["a", "b"], rounds, **about)

    return make


def _scores(part, headline, fields, by_task):
    found = {}
    for field in fields:
        if not field.name.removeprefix("client_").startswith(part):
            continue
        values = by_task if field.name.endswith(headline) else by_task / 2
        mean = float(np.nanmean(values)) if np.isfinite(values).any() else np.nan
        by_axis = {"round": np.array(mean), "task": values, "client": np.full(2, mean)}
        found[field.name] = by_axis[field.axes[-1]]
        if field.name.endswith("left_out"):
            found[field.name] = np.array(np.isnan(values).sum(), np.int32)
    return found


@pytest.fixture
def make_judged():
    """Return a function that records a complete run of any metrics: the results of each round by field."""

    def make(folder, metrics, fields, given, partition=None, settings=None):
        config = {"dataset": {"name": "MADE-UP"}, "algorithm": "fedavg", "seed": 1, **(settings or {})}
        rounds = [_rows(index, "ab", fields=fields) for index in range(len(given))]
        for found, (results, _) in zip(given, rounds, strict=True):
            results |= {name: np.asarray(values, results[name].dtype) for name, values in found.items()}
        about = {"partition": partition or {}, "extra": fields, "metrics": metrics}
        return recorded(folder, config, ["a", "b"], rounds, **about)

    return make


@pytest.fixture
def make_rows():
    """Return a function that makes up one round's results and measurements, on some ranks."""
    return _rows


def _rows(index, values, ranks=2, fields=FIELDS["accuracy"]):
    costs = {"client_bytes_up": 1_000_000, "client_bytes_down": 500_000, "model_flops": 2_000_000_000}
    known = {"val_loss": 1.0, "test_accuracy": values, "val_accuracy": values}
    scored = {name: known[name] for name in known.keys() & {field.name for field in fields}}
    results, measurements = blank(len(values), ranks, fields, **costs, **scored)
    measurements["round_seconds"][()] = 1.0 + index
    measurements["virtual_seconds"][()] = 10.0
    measurements["phase_seconds"][:] = [[0.5] * 6, *[[0.25] * 6] * (ranks - 1)]
    measurements["collective_bytes"][:] = 3_000_000
    measurements["executed_flops"][:] = 1_500_000_000
    return results, measurements
