import numpy as np
import pytest

from fedmpi.analysis.figures.style import caption
from fedmpi.errors import BadInput
from fedmpi.exchange.privacy import EPSILON


def run(record, privacy, accuracy, epsilon=None, seed=10):
    settings = {"privacy": privacy, "seed": seed}
    spent = {} if epsilon is None else {"epsilon": [epsilon], "extra": (EPSILON,)}
    return record(settings, test_accuracy=[accuracy], **spent)


def noise(multiplier):
    return {"name": "central", "clip": 0.15, "noise_multiplier": multiplier}


def test_points_by_epsilon_and_a_line_without_noise(record, draw):
    runs = [
        run(record, noise(1.0), [0.4, 0.6], 166.0),
        run(record, noise(0.1), [0.6, 0.8], 11112.0, seed=10),
        run(record, noise(0.1), [0.7, 0.9], 11112.0, seed=11),
        run(record, {"name": "clipping", "clip": 0.15}, [0.8, 0.9]),
    ]
    picture = draw("epsilon", runs)
    (axis,) = picture.axes
    assert axis.get_title(loc="left") == "FedAvg on PROTEINS"
    (points, _, _), line = axis.containers[0].lines, axis.lines[-1]
    assert np.allclose(points.get_xydata(), [[166.0, 50.0], [11112.0, 75.0]])
    assert (line.get_label(), list(line.get_ydata())) == ("clipped, without noise", [85.0, 85.0])
    assert "95 % interval over seeds" in caption(picture)


def test_runs_without_noise_alone_are_refused(record, draw):
    with pytest.raises(BadInput, match="no run has spent any"):
        draw("epsilon", [run(record, {"name": "clipping", "clip": 0.15}, [0.5, 0.5])])
