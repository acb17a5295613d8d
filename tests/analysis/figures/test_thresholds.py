import pytest

from fedmpi.analysis.figures.style import caption
from fedmpi.errors import BadInput


def gcfl(eps1, eps2, **more):
    return {"algorithm": {"name": "gcfl", "eps1": eps1, "eps2": eps2}, **more}


def numbers(axis):
    return {tuple(map(round, text.get_position())): text.get_text() for text in axis.texts}


def framed(axis, gid):
    boxes = [box for box in axis.patches if box.get_gid() == gid]
    return [(round(box.get_x() + 0.44), round(box.get_y() + 0.44)) for box in boxes]


def test_a_heatmap_of_the_thresholds_per_rule(record, draw):
    split = [[0, 0], [0, 1]]
    runs = [
        record(gcfl(0.2, 0.5), test_accuracy=[[0.9, 0.9], [0.6, 0.8]], group=split),
        record(gcfl(0.1, 0.5), test_accuracy=[[0.9, 0.9], [0.5, 0.6]]),
        record(gcfl(0.1, 0.4, seed=10), test_accuracy=[[0.0, 0.0], [0.5, 0.7]]),
        record(gcfl(0.1, 0.4, seed=42), test_accuracy=[[0.0, 0.0], [0.7, 0.9]]),
    ]
    picture = draw("thresholds", runs, published=[0.1, 0.4])
    last, published, _ = picture.axes
    assert last.get_title(loc="left") == "GCFL on PROTEINS: last round"
    assert published.get_title(loc="left") == "GCFL on PROTEINS: as published"
    ticks = (*last.get_xticklabels(), *last.get_yticklabels())
    assert [tick.get_text() for tick in ticks] == ["0.1", "0.2", "0.4", "0.5"]
    assert numbers(last) == {(0, 0): "70.0", (0, 1): "55.0", (1, 1): "70.0"}
    assert numbers(published) == {(0, 0): "70.0", (0, 1): "55.0", (1, 1): "90.0"}
    assert framed(last, "largest") == [(0, 0), (1, 1)]
    assert framed(published, "largest") == [(1, 1)]
    assert framed(last, "published") == [(0, 0)]
    assert framed(last, "no split") == [(0, 1), (0, 0)]
    assert "chosen on test data" in caption(picture)
    assert "dashed frame: the published pair" in caption(picture)


def test_a_row_per_algorithm_and_one_without_thresholds_is_refused(record, draw):
    plus = {"algorithm": {"name": "gcfl-plus", "eps1": 0.1, "eps2": 0.5}}
    runs = [record(settings, test_accuracy=[[0.5, 0.5]]) for settings in (plus, gcfl(0.1, 0.5), {})]
    *panels, _ = draw("thresholds", runs[:2], rules=["last round"]).axes
    titles = [axis.get_title(loc="left") for axis in panels]
    assert titles == ["GCFL+ on PROTEINS: last round", "GCFL on PROTEINS: last round"]
    with pytest.raises(BadInput, match="fedavg has no eps1 and eps2"):
        draw("thresholds", runs[2:])
