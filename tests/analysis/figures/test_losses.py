import numpy as np
import pytest

from fedmpi.algorithms.fedcch import FedCch, FedCchOptions
from fedmpi.analysis.figures.style import caption
from fedmpi.errors import BadInput

AGREEMENT, *_ = FedCch(FedCchOptions(name="fedcch")).fields(2)
NOTHING = [np.nan, np.nan]
NEVER = {"extra": [AGREEMENT], "domain_agreement": [np.nan]}


def lines(axis):
    return [line.get_xydata().tolist() for line in axis.lines]


def labels(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


def test_mean_and_deviation_are_over_clients_after_seeds(record, draw):
    losses = ([[1.0, 3.0], [0.0, 2.0]], [[3.0, 5.0], [2.0, 2.0]])
    runs = [record({"seed": seed}, test_loss=each) for seed, each in enumerate(losses, 1)]
    picture = draw("losses", runs)
    line, low, high = lines(picture.axes[0])
    # Clients' means over seeds: 2 and 4, then 1 and 2; deviations 2 / sqrt(2) and 1 / sqrt(2).
    assert line == [[1.0, 3.0], [2.0, 1.5]]
    assert np.allclose(low, [[1, 3 - np.sqrt(2)], [2, 1.5 - np.sqrt(0.5)]])
    assert np.allclose(high, [[1, 3 + np.sqrt(2)], [2, 1.5 + np.sqrt(0.5)]])
    assert "means over seeds 1, 2" in caption(picture)


def test_a_panel_per_dataset_and_a_line_per_algorithm(record, draw):
    others = {"algorithm": {"name": "gcfl-plus"}}, {}, {"dataset": {"name": "gcfl/molecules"}}
    runs = [record(settings, test_loss=[[1.0, 2.0]]) for settings in others]
    first, second = draw("losses", runs).axes
    titles = [axis.get_title(loc="left") for axis in (first, second)]
    assert titles == ["PROTEINS, 2 clients", "MOLECULES, 2 clients"]
    assert labels(first) == ["FedAvg", "GCFL+"]


@pytest.mark.parametrize(
    ("losses", "options", "line"),
    [
        ([NOTHING, [1.0, 2.0], NOTHING, [2.0, 3.0]], {}, [[2.0, 1.5], [4.0, 2.5]]),  # not evaluated
        ([[90.0, 90.0], [1.0, 2.0], [1.0, 1.0]], {"first_round": 2}, [[2.0, 1.5], [3.0, 1.0]]),
        ([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], {"smooth": 2, "band": False}, [[2.0, 1.5], [3.0, 2.5]]),
    ],
)
def test_the_rounds_of_a_line(record, draw, losses, options, line):
    picture = draw("losses", [record({}, test_loss=losses)], **options)
    assert lines(picture.axes[0])[0] == line
    if "smooth" in options:
        assert "Thick: mean over clients and of 2 rounds (seed 10)." in caption(picture)


def test_accuracies_in_a_panel_per_dataset_whatever_the_model_and_without_bands(record, draw):
    models = [{"model": {"name": "gin", "norm": norm}} for norm in ("batch", "graph")]
    runs = [record(model, test_accuracy=[[0.5, 0.7], [0.6, 0.8]]) for model in models]
    (axis,) = draw("losses", runs, field="test_accuracy", panels="dataset", band=False).axes
    assert lines(axis) == [[[1.0, 0.6], [2.0, 0.7]]] * 2
    assert axis.get_ylabel() == "test accuracy"
    assert labels(axis) == ["FedAvg, norm = batch", "FedAvg, norm = graph"]


def test_agreement_of_clusters_is_smoothed_and_its_mean_is_named(record, draw):
    runs = [record({}, extra=[AGREEMENT], domain_agreement=[0.0, 0.5, 1.0, np.nan])]
    (axis,) = draw("losses", runs, field="domain_agreement", smooth=2).axes
    assert lines(axis) == [[[2.0, 0.25], [3.0, 0.75], [4.0, 1.0]]]
    assert labels(axis) == ["FedAvg: mean 0.50"]


@pytest.mark.parametrize(
    ("results", "options", "words"),
    [
        ({"test_loss": [[1.0, 1.0]]}, {"first_round": 4}, "first_round = 4, but fedavg has fewer rounds"),
        ({"test_loss": [[1.0, 1.0]]}, {"smooth": 4}, "smooth = 4, but fedavg has fewer rounds"),
        ({"test_loss": [NOTHING]}, {}, "test_loss is never defined there; leave it out"),
        ({"test_loss": [NOTHING]}, {"field": "count_loss"}, "has no count_loss: leave it out, or try --opt"),
        ({"test_loss": [[1.0, 1.0]]}, {"field": "domain_agreement"}, "has no domain_agreement"),
        (NEVER, {"field": "domain_agreement"}, "may be of one domain; leave it out"),
    ],
)
def test_what_cannot_be_drawn_is_named(record, draw, results, options, words):
    with pytest.raises(BadInput, match=words):
        draw("losses", [record({}, **results)], **options)
