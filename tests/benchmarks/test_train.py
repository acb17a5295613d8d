import pytest
import torch

from fedmpi.benchmarks import machine
from fedmpi.benchmarks.samples import Turns
from fedmpi.benchmarks.train import GinBytes, Limits, measure
from fedmpi.datasets.source import DataSource
from fedmpi.models.counts import GraphCounts
from fedmpi.models.options import GinOptions

SHARES = ("model_peak_share", "executed_peak_share", "bandwidth_share", "roofline_share")
UNITS = {
    **dict.fromkeys(("wall_seconds", "cpu_seconds"), "s"),
    **dict.fromkeys(("model_rate", "executed_rate"), "GFLOP/s"),
    **{"counted_bandwidth": "GB/s", **dict.fromkeys(SHARES, "1")},
}


@pytest.fixture(scope="module")
def report(tiny, world, tmp_path_factory):
    source = DataSource(tmp_path_factory.mktemp("cache"), offline=True)
    return measure(tiny(), source, world, Turns(2, 1))


def test_both_phases_keep_every_round_of_every_figure(report):
    phases = {each.labels["phase"]: each.figures for each in report.measurements if "phase" in each.labels}
    assert set(phases) == {"train", "evaluate"}
    for figures in phases.values():
        assert {name: samples.unit for name, samples in figures.items()} == UNITS
        assert {len(samples.values) for samples in figures.values()} == {2}
    assert report.settings["warmup"] == 1
    assert report.settings["case"]["dataset"]["name"] == "synthetic"


def test_rates_are_counted_work_over_measured_time(report):
    for each in report.measurements[:2]:
        work = report.results["model_gflop"][each.labels["phase"]]
        rates, seconds = (each.figures[name].values for name in ("model_rate", "wall_seconds"))
        assert [a * b for a, b in zip(rates, seconds, strict=True)] == pytest.approx([work] * 2)
        share = each.figures["model_peak_share"].values[0] * report.results["square_gflops"]
        assert share == pytest.approx(each.figures["model_rate"].values[0])


def test_the_machine_is_measured_in_the_same_run(report):
    shapes = {each.labels.get("shape") for each in report.measurements}
    assert {"square", "layer", "weight gradient", "array"} <= shapes
    rows = report.results["nodes_per_step"]
    assert f"{rows}x64x64" in {each.labels.get("size") for each in report.measurements}
    assert report.results["square_gflops"] > 0
    assert report.results["triad_gigabytes_per_second"] > 0


def test_streams_larger_than_the_cache():
    found = machine.streaming(torch.device("cpu"), repetitions=1)
    size = int(str(found.labels["size"]).removesuffix(" B"))
    assert size >= max(64 << 20, 4 * machine.last_level_cache_bytes())
    assert found.figures["rate"].unit == "GB/s"


def test_bytes_of_a_hand_counted_graph():
    # One triangle (3 nodes, 6 directed edges), width 2, hidden 4, one layer, 2 classes.
    counted, counts = GinBytes(GinOptions(hidden=4, layers=1), 2, 2), GraphCounts(1, 3, 6)
    embed = 4 * (3 * 2 + 2 * 4 + 3 * 4)
    layers = 2 * 4 * (3 * 4 + 4 * 4 + 3 * 4)
    head = 4 * (4 + 4 * 4 + 4) + 4 * (4 + 4 * 2 + 2)
    sums = 4 * (2 * 3 * 4 + 3 * 4 + 4) + 4 * (6 + 3 + 1)
    assert counted.forward(counts) == embed + layers + head + sums
    assert counted.training(counts) == 2 * embed + 3 * (layers + head) + 2 * sums


def test_a_normalisation_reads_and_writes_what_it_normalises():
    counts = GraphCounts(1, 3, 6)
    plain, normed = (GinBytes(GinOptions(hidden=4, layers=2, norm=n), 2, 2) for n in ("none", "batch+graph"))
    array = 4 * 3 * 4
    assert normed.forward(counts) - plain.forward(counts) == 2 * 2 * 2 * array
    assert normed.training(counts) - plain.training(counts) == 2 * 2 * 5 * array


def test_the_limit_is_computing_or_moving_whichever_takes_longer():
    limits = Limits(square=200.0, layer=100.0, bandwidth=20.0)
    assert limits.seconds(gflop=10, gigabytes=1) == 0.1
    assert limits.seconds(gflop=10, gigabytes=4) == 0.2
