import pytest

from fedmpi.errors import BadInput

NORMS = [[1.0, 2.0, 3.0], [1.5, 2.5, 3.5], [1.0, 1.0, 1.0]]
GROUPS = [[0, 0, 0], [0, 1, 0], [0, 1, 0]]


@pytest.fixture
def run(record):
    gcfl = {"algorithm": {"name": "gcfl"}}
    return record(gcfl, clients=("a", "b", "c"), gradient_norm=NORMS, delta_norm=GROUPS, group=GROUPS)


def series(axis):
    return [line for line in axis.lines if line.get_gid() != "split"]


def test_lines_are_coloured_by_final_cluster_and_splits_marked(run, draw):
    (axis,) = draw("gradient-norms", [run]).axes
    first, second, third = series(axis)
    assert first.get_xydata().tolist() == [[1, 1.0], [2, 1.5], [3, 1.0]]
    labels = [line.get_label() for line in (first, second, third)]
    assert labels == ["a (cluster 1)", "c (cluster 1)", "b (cluster 2)"]
    assert first.get_color() == second.get_color() != third.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    assert [list(line.get_xdata()) for line in axis.lines if line.get_gid() == "split"] == [[2, 2]]


def test_clients_and_field_are_a_choice(run, draw):
    (axis,) = draw("gradient-norms", [run], clients=["b"], field="delta_norm", log=False).axes
    (line,) = series(axis)
    assert line.get_xydata().tolist() == [[1, 0], [2, 1], [3, 1]]
    assert axis.get_ylabel() == "delta norm"


def test_six_clients_by_default_and_a_panel_per_run(record, draw):
    names = [f"client-{number}" for number in range(8)]
    runs = [record({"seed": seed}, clients=names, gradient_norm=[[1.0] * 8]) for seed in (10, 42)]
    axes = draw("gradient-norms", runs).axes
    assert [len(series(axis)) for axis in axes] == [6, 6]
    assert [axis.get_title(loc="left") for axis in axes] == [
        "FedAvg on PROTEINS, seed 10",
        "FedAvg on PROTEINS, seed 42",
    ]


def test_an_unknown_client_is_refused(run, draw):
    with pytest.raises(BadInput, match=r'has no client "d".* \(it has: a, b, c\)'):
        draw("gradient-norms", [run], clients=["d"])
