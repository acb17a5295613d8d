import numpy as np
import pytest

from fedmpi.analysis import figures
from fedmpi.analysis.figures import style
from fedmpi.store.reader import load_run
from fedmpi.store.schema import axis_sizes, blank_round, measurement_fields, result_fields
from tests.analysis.tasks import FIELDS, recorded


@pytest.fixture
def record(tmp_path):
    """Return a function that records a made-up complete run and reads it back.

    Settings are merged into the configuration; results are arrays [round][client] by name, `extra` the
    fields among them that an algorithm adds.
    """

    def make(settings, clients=("a", "b"), extra=(), **results):
        rounds = len(next(iter(results.values())))
        config = {
            "suite": "made/up",
            "name": "case",
            "seed": 10,
            "rounds": rounds,
            "dataset": {"name": "PROTEINS", "features": "original"},
            "partition": {"name": "chunks", "clients": 10, "overlap": False},
            "algorithm": {"name": "fedavg"},
            **settings,
        }
        folder, extra = tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}", (*FIELDS["accuracy"], *extra)
        by_round = [
            {name: np.asarray(values)[at] for name, values in results.items()} for at in range(rounds)
        ]
        rows = [_rows(len(clients), given, extra) for given in by_round]
        return load_run(recorded(folder, config, clients, rows, ranks=1, extra=extra))

    return make


def _rows(num_clients, given, extra):
    sizes = axis_sizes(num_clients, 1, 1)
    results = blank_round(result_fields(extra), sizes)
    results["participated"][:] = 1
    for name, values in given.items():
        results[name][...] = values
    return results, blank_round(measurement_fields(), sizes)


@pytest.fixture
def draw():
    """Return a function that draws a kind from runs, in the style of all pictures."""

    def run(kind, runs, **options):
        module = figures.load(kind)
        with style.applied():
            picture = module.draw(runs, figures.check_options(module, options, "--option "), None)
            picture.draw_without_rendering()
        return picture

    return run
