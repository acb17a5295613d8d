import numpy as np
import pytest

from fedmpi.store.record import RunRecord
from fedmpi.store.schema import axis_sizes, blank_round, measurement_fields, result_fields
from fedmpi.tasks.graph_classification import FIELDS

WRITER = """
import sys
from pathlib import Path
from fedmpi.errors import RunFailed
from fedmpi.store.record import RunRecord
from fedmpi.store.schema import axis_sizes, blank_round, result_fields
from fedmpi.tasks.graph_classification import FIELDS
about = dict(config={}, clients=["a", "b"], rounds=int(sys.argv[2]), partition={}, extra=FIELDS)
record = RunRecord.create(Path(sys.argv[1]), **about)
record.begin_attempt(0, 2, ["Bcast"], {})
try:
    for index in range(about["rounds"]):
        results = blank_round(result_fields(FIELDS), axis_sizes(2))
        results["test_loss"][:] = [index / 7, index / 11]
        record.write_round(index, results, {"round_seconds": index / 3})
        print(index, flush=True)
except RunFailed as failure:
    print(failure)
"""
"""A process that writes rounds into a folder, and says which are written."""

CLIENTS = ("alpha", "beta")
COLLECTIVES = ("Bcast", "Gatherv", "Reduce")


def rows(index, ranks=3, extra=()):
    """Return results and measurements of round `index` of a made-up run with two clients."""
    sizes = axis_sizes(len(CLIENTS), ranks, len(COLLECTIVES))
    results = blank_round(result_fields((*FIELDS, *extra)), sizes)
    results["participated"][:] = 1
    results["test_accuracy"][:] = [0.1 * index, 1 / 3]
    results["val_loss"][:] = [np.nan, np.inf]
    results["train_loss"][:] = [-np.inf, -0.0]
    results["parameter_digest"][:] = [2**64 - 1 - index, 2**63]
    measurements = blank_round(measurement_fields(extra), sizes)
    measurements["round_seconds"][()] = 0.25 + index
    measurements["phase_seconds"][:] = index
    return results, measurements


@pytest.fixture
def make_rows():
    return rows


@pytest.fixture
def new_record():
    def make(folder, rounds=6, config=None, extra=(), **options):
        return RunRecord.create(
            folder,
            config=config or {"algorithm": "fedavg", "seed": 7},
            clients=CLIENTS,
            rounds=rounds,
            partition={"alpha/train": np.array([3, 1, 2]), "share": np.array([0.5, np.nan])},
            extra=(*FIELDS, *extra),
            **options,
        )

    return make


@pytest.fixture
def begun_run(new_record):
    """Return a function that makes a record with an attempt and its first rounds."""

    def make(folder, written, rounds=6, change=None, **options):
        record = new_record(folder, rounds, **options)
        record.begin_attempt(0, 3, COLLECTIVES, {"host": "nowhere"})
        for index in range(written):
            results, measurements = rows(index)
            if change:
                change(index, results)
            record.write_round(index, results, measurements)
        return record

    return make


@pytest.fixture
def finished_run(begun_run):
    """Return a function that writes a whole small run into a folder."""

    def make(folder, rounds=6, **options):
        with begun_run(folder, rounds, rounds, **options) as record:
            record.finish("complete")
        return folder

    return make


@pytest.fixture
def case(tmp_path, finished_run):
    """Return the folder of a whole run."""
    return finished_run(tmp_path / "case")


@pytest.fixture
def whole(tmp_path, finished_run):
    """Return the folder of another one, which nothing happens to."""
    return finished_run(tmp_path / "whole")
