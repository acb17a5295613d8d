import pytest

from fedmpi.analysis import figures
from fedmpi.analysis.figures import style
from fedmpi.store.reader import load_run
from tests.analysis.tasks import FIELDS, blank, recorded


@pytest.fixture
def record(tmp_path):
    """Return a function that records a made-up complete run and reads it back.

    Settings are merged into the configuration; results are arrays [round][client] by name, `extra` the
    fields among them that an algorithm adds.
    """

    def make(settings, clients=("a", "b"), extra=(), **results):
        count, extra = len(next(iter(results.values()))), (*FIELDS["accuracy"], *extra)
        config = {
            "suite": "made/up",
            "name": "case",
            "seed": 10,
            "rounds": count,
            "dataset": {"name": "PROTEINS", "features": "original"},
            "partition": {"name": "chunks", "clients": 10, "overlap": False},
            "algorithm": {"name": "fedavg"},
            **settings,
        }
        given = [{name: values[number] for name, values in results.items()} for number in range(count)]
        rounds = [blank(len(clients), fields=extra, **each) for each in given]
        folder = tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}"
        return load_run(recorded(folder, config, clients, rounds, ranks=1, extra=extra))

    return make


@pytest.fixture
def draw():
    """Return a function that draws a kind from runs, in the style of all pictures."""

    def run(kind, runs, **options):
        with style.applied():
            picture = figures.check_options(figures.load(kind), options, "--option ").draw(runs)
            picture.draw_without_rendering()
        return picture

    return run
