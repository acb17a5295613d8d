import pytest

from fedmpi.errors import BadInput

NORMS = [[1.0, 2.0, 3.0], [1.5, 2.5, 3.5], [1.0, 1.0, 1.0]]
GROUPS = [[0, 0, 0], [0, 1, 0], [0, 1, 0]]


@pytest.fixture
def run(record):
    gcfl = {"algorithm": {"name": "gcfl"}}
    return record(gcfl, clients=("a", "b", "c"), gradient_norm=NORMS, delta_norm=GROUPS, group=GROUPS)


def series(axis):
    return [line for line in axis.lines if line.get_gid() is None]


def test_a_colour_per_client_a_kind_of_line_per_cluster_and_splits_marked(run, draw):
    (axis,) = draw("gradient-norms", [run], smooth=1).axes
    first, second, third = series(axis)
    assert first.get_xydata().tolist() == [[1, 1.0], [2, 1.5], [3, 1.0]]
    labels = [text.get_text() for text in axis.get_legend().get_texts()]
    assert labels == ["cluster 1", "a", "c", "cluster 2", "b"]
    assert len({line.get_color() for line in (first, second, third)}) == 3
    assert first.get_linestyle() == second.get_linestyle() != third.get_linestyle()
    assert [list(line.get_xdata()) for line in axis.lines if line.get_gid() == "split"] == [[2, 2]]


def test_the_thick_line_is_the_mean_of_the_last_rounds_of_clients_that_are_a_choice(run, draw):
    (axis,) = draw("gradient-norms", [run], clients=["a"], smooth=2).axes
    (line,) = series(axis)
    assert line.get_xydata()[1:].tolist() == [[2, 1.25], [3, 1.25]]
    (single,) = [line for line in axis.lines if line.get_gid() == "each round"]
    assert single.get_ydata().tolist() == [1.0, 1.5, 1.0]
    (axis,) = draw("gradient-norms", [run], clients=["b"], field="delta_norm", smooth=1).axes
    (line,) = series(axis)
    assert line.get_xydata().tolist() == [[1, 0], [2, 1], [3, 1]]
    assert axis.get_ylabel() == "delta norm"
    with pytest.raises(BadInput, match=r'has no client "d".* \(it has: a, b, c\)'):
        draw("gradient-norms", [run], clients=["d"])


def test_six_clients_by_default_and_a_panel_per_run(record, draw):
    names = [f"client-{number}" for number in range(8)]
    runs = [record({"seed": seed}, clients=names, gradient_norm=[[1.0] * 8]) for seed in (10, 42)]
    axes = draw("gradient-norms", runs).axes
    assert [len(series(axis)) for axis in axes] == [6, 6]
    titles = [axis.get_title(loc="left") for axis in axes]
    assert titles == ["FedAvg on PROTEINS, seed 10", "FedAvg on PROTEINS, seed 42"]
