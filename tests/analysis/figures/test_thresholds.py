import pytest

from fedmpi.analysis.figures.style import caption
from fedmpi.errors import BadInput


def gcfl(eps1, eps2, **more):
    return {"algorithm": {"name": "gcfl", "eps1": eps1, "eps2": eps2}, **more}


def lines(axis):
    return {
        line.get_label(): [[round(float(x), 6), round(float(y), 6)] for x, y in line.get_xydata()]
        for line in axis.lines
    }


def test_a_line_per_eps2_and_a_panel_per_rule(record, draw):
    split = [[0, 0], [0, 1]]
    runs = [
        record(gcfl(0.2, 0.5), test_accuracy=[[0.9, 0.9], [0.6, 0.8]], group=split),
        record(gcfl(0.1, 0.5), test_accuracy=[[0.9, 0.9], [0.5, 0.6]]),
        record(gcfl(0.1, 0.4, seed=10), test_accuracy=[[0.0, 0.0], [0.5, 0.7]]),
        record(gcfl(0.1, 0.4, seed=42), test_accuracy=[[0.0, 0.0], [0.7, 0.9]]),
    ]
    picture = draw("thresholds", runs)
    last, published = picture.axes
    assert last.get_title(loc="left") == "GCFL on PROTEINS: last round"
    assert published.get_title(loc="left") == "GCFL on PROTEINS: as published"
    assert lines(last) == {"0.4": [[0.1, 70.0]], "0.5": [[0.1, 55.0], [0.2, 70.0]]}
    assert lines(published) == {"0.4": [[0.1, 70.0]], "0.5": [[0.1, 55.0], [0.2, 90.0]]}
    assert "chosen on test data" in caption(picture)


def test_a_row_per_algorithm(record, draw):
    plus = {"algorithm": {"name": "gcfl-plus", "eps1": 0.1, "eps2": 0.5}}
    runs = [
        record(plus, test_accuracy=[[0.5]], clients=("a",)),
        record(gcfl(0.1, 0.5), test_accuracy=[[0.5, 0.5]]),
    ]
    titles = [axis.get_title(loc="left") for axis in draw("thresholds", runs, rules=["last round"]).axes]
    assert titles == ["GCFL+ on PROTEINS: last round", "GCFL on PROTEINS: last round"]


def test_an_algorithm_without_thresholds_is_refused(record, draw):
    with pytest.raises(BadInput, match="fedavg has no eps1 and eps2"):
        draw("thresholds", [record({}, test_accuracy=[[0.5, 0.5]])])
