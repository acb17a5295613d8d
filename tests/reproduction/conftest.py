import pytest

from fedmpi.analysis.rows import COLUMNS
from fedmpi.reproduction.results import Key, Results


@pytest.fixture(scope="session")
def empty():
    """Return results without rows, which know the plans of suites that other tests have asked for."""
    return Results([])


@pytest.fixture
def make_rows():
    """Return a function that makes rows from accuracies, by seed a list over clients.

    `best` and `published` are the accuracies under the two other selection rules, by default the same.
    """

    def make(algorithm, accuracies, best=None, published=None, **columns):
        return [
            {
                **dict.fromkeys(COLUMNS, ""),
                **{"suite": "made/up", "case": f"seed{seed}-{algorithm}", "dataset": "PROTEINS"},
                **{"rounds": "200", "options": "partition=chunks", "split_seed": "123"},
                **{"test_graphs": "10", "run_wall_seconds": "60", "numerics_version": "2"},
                **{"algorithm": algorithm, "seed": str(seed), "client": f"client-{place}"},
                "metric": "accuracy",
                "score": str(value),
                "score_best_by_validation": str((best or accuracies)[seed][place]),
                "score_as_published": str((published or accuracies)[seed][place]),
                **columns,
            }
            for seed, values in accuracies.items()
            for place, value in enumerate(values)
        ]

    return make


@pytest.fixture
def cell(make_rows):
    """Return a function that makes the cell of such rows."""

    def make(algorithm, accuracies, **columns):
        key = Key("PROTEINS", algorithm, 200, "partition=chunks")
        return Results(make_rows(algorithm, accuracies, **columns)).cell(key)

    return make
