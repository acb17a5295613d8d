from dataclasses import replace

import numpy as np
import pytest

from fedmpi.analysis.figures import style
from fedmpi.datasets.names import family_of
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.heterogeneity.distances import WalkOptions, heterogeneity


@pytest.fixture
def run(record, real_data):
    """Return a function that makes a run of datasets, a client each, from their last test accuracies."""

    def make_run(datasets, accuracy, seed=10, algorithm="fedavg"):
        dataset = {"name": "+".join(datasets), "features": "degree"}
        settings = {"dataset": dataset, "algorithm": {"name": algorithm}, "seed": seed}
        made = record(settings, tuple(datasets), test_accuracy=[[0.0] * len(datasets), accuracy])
        digests = [f"{name} {family_of(name).digest(name)}" for name in datasets]
        return replace(made, partition={"datasets": np.array(datasets), "dataset_digests": np.array(digests)})

    return make_run


def test_a_point_per_pair_with_the_spread_over_seeds(run, draw):
    runs = [
        run(["MUTAG", "PTC_MR"], [0.7, 0.1], seed=10), run(["MUTAG", "PTC_MR"], [0.9, 0.2], seed=42),
        run(["BZR", "MUTAG"], [0.3, 0.6], seed=10),
    ]  # fmt: skip
    (axis,) = draw("pair-heterogeneity", runs, dataset="MUTAG", walks=60).axes
    names = {text.get_text(): text.xy for text in axis.texts}
    assert set(names) == {"PTC_MR", "BZR"}
    assert names["PTC_MR"][1] == pytest.approx(80)  # the mean of 70 and 90 on MUTAG
    assert names["BZR"][1] == pytest.approx(60)
    raws = [DataSource.from_environment().load(name) for name in ("MUTAG", "PTC_MR")]
    assert names["PTC_MR"][0] == heterogeneity(raws, WalkOptions(walks=60)).structure.mean
    (bars,) = axis.collections
    low, high = bars.get_segments()[0][:, 1]
    assert (high - low) / 2 == pytest.approx(14.142, abs=1e-3)


def test_the_dataset_alone_is_a_band(run, draw):
    runs = [run(["MUTAG", "PTC_MR"], [0.7, 0.1]), run(["MUTAG"], [0.65], algorithm="self-train")]
    picture = draw("pair-heterogeneity", runs, dataset="MUTAG", walks=60)
    (legend,) = picture.legends
    assert sorted(text.get_text() for text in legend.texts) == ["FedAvg", "MUTAG alone, self-train"]
    assert any(np.allclose(line.get_ydata(), 65) for line in picture.axes[0].lines)
    assert "over pairs of one graph of each dataset" in style.caption(picture).replace("\n", " ")


def test_runs_of_other_data_are_refused(run, draw):
    with pytest.raises(BadInput, match=r"is not of PROTEINS and one other dataset.*'PROTEINS\+DD'"):
        draw("pair-heterogeneity", [run(["MUTAG", "PTC_MR"], [0.7, 0.1])])
    with pytest.raises(BadInput, match="no run of MUTAG and another dataset"):
        draw("pair-heterogeneity", [run(["MUTAG"], [0.7])], dataset="MUTAG")
