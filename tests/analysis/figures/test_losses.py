import numpy as np
import pytest

from fedmpi.algorithms.fedcch import FedCch, FedCchOptions
from fedmpi.analysis.figures.style import caption
from fedmpi.errors import BadInput


def test_mean_and_deviation_are_over_clients_after_seeds(record, draw):
    runs = [
        record({"seed": 1}, test_loss=[[1.0, 3.0], [0.0, 2.0]]),
        record({"seed": 2}, test_loss=[[3.0, 5.0], [2.0, 2.0]]),
    ]
    picture = draw("losses", runs)
    (axis,) = picture.axes
    line, low, high = (entry.get_xydata().tolist() for entry in axis.lines)
    # Clients' means over seeds: 2 and 4, then 1 and 2; deviations 2 / sqrt(2) and 1 / sqrt(2).
    assert line == [[1.0, 3.0], [2.0, 1.5]]
    assert np.allclose(low, [[1, 3 - np.sqrt(2)], [2, 1.5 - np.sqrt(0.5)]])
    assert np.allclose(high, [[1, 3 + np.sqrt(2)], [2, 1.5 + np.sqrt(0.5)]])
    assert "means over seeds 1, 2" in caption(picture)


def test_a_panel_per_dataset_and_a_line_per_algorithm(record, draw):
    losses = [[1.0, 2.0]]
    runs = [
        record({"algorithm": {"name": "gcfl-plus"}}, test_loss=losses),
        record({}, test_loss=losses),
        record({"dataset": {"name": "gcfl/molecules"}}, test_loss=losses),
    ]
    first, second = draw("losses", runs).axes
    assert [axis.get_title(loc="left") for axis in (first, second)] == [
        "PROTEINS, 2 clients",
        "MOLECULES, 2 clients",
    ]
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["FedAvg", "GCFL+"]


def test_rounds_without_an_evaluation_are_left_out(record, draw):
    nothing = [np.nan, np.nan]
    (axis,) = draw("losses", [record({}, test_loss=[nothing, [1.0, 2.0], nothing, [2.0, 3.0]])]).axes
    assert axis.lines[0].get_xydata().tolist() == [[2.0, 1.5], [4.0, 2.5]]


def test_the_first_rounds_may_be_left_out(record, draw):
    run = record({}, test_loss=[[90.0, 90.0], [1.0, 2.0], [1.0, 1.0]])
    (axis,) = draw("losses", [run], first_round=2).axes
    assert axis.lines[0].get_xydata().tolist() == [[2.0, 1.5], [3.0, 1.0]]
    with pytest.raises(BadInput, match="first_round = 4, but fedavg has fewer rounds"):
        draw("losses", [run], first_round=4)


def test_accuracies_in_a_panel_per_dataset_whatever_the_model_and_without_bands(record, draw):
    accuracy = [[0.5, 0.7], [0.6, 0.8]]
    runs = [
        record({"model": {"name": "gin", "norm": norm}}, test_accuracy=accuracy)
        for norm in ("batch", "graph")
    ]
    (axis,) = draw("losses", runs, field="test_accuracy", panels="dataset", band=False).axes
    assert [line.get_xydata().tolist() for line in axis.lines] == [[[1.0, 0.6], [2.0, 0.7]]] * 2
    assert axis.get_ylabel() == "test accuracy"
    labels = [text.get_text() for text in axis.get_legend().get_texts()]
    assert labels == ["FedAvg, norm = batch", "FedAvg, norm = graph"]


def test_agreement_of_clusters_is_smoothed_and_its_mean_is_named(record, draw):
    field, *_ = FedCch(FedCchOptions(name="fedcch")).fields(2)
    runs = [record({}, extra=[field], domain_agreement=[0.0, 0.5, 1.0, np.nan])]
    (axis,) = draw("losses", runs, field="domain_agreement", smooth=2).axes
    assert axis.lines[0].get_xydata().tolist() == [[2.0, 0.25], [3.0, 0.75], [4.0, 1.0]]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["FedAvg: mean 0.50"]
    assert len(axis.lines) == 1
    with pytest.raises(BadInput, match="may be of one domain; leave it out"):
        draw("losses", [record({}, extra=[field], domain_agreement=[np.nan])], field="domain_agreement")
    with pytest.raises(BadInput, match="has no domain_agreement"):
        draw("losses", [record({}, test_loss=[[1.0, 1.0]])], field="domain_agreement")


def test_means_of_rounds_are_said_in_the_caption_and_need_so_many_rounds(record, draw):
    run = record({}, test_loss=[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    picture = draw("losses", [run], smooth=2, band=False)
    assert picture.axes[0].lines[0].get_xydata().tolist() == [[2.0, 1.5], [3.0, 2.5]]
    assert "Thick: mean over clients and of 2 rounds (seed 10)." in caption(picture)
    with pytest.raises(BadInput, match="smooth = 4, but fedavg has fewer rounds"):
        draw("losses", [run], smooth=4)


def test_a_run_without_the_field_is_named(record, draw):
    run = record({}, test_loss=[[np.nan, np.nan]])
    with pytest.raises(BadInput, match="test_loss is never defined there; leave it out"):
        draw("losses", [run])
    with pytest.raises(BadInput, match="has no count_loss: leave it out, or try --option field=train_loss"):
        draw("losses", [run], field="count_loss")
