import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fedmpi.analysis.scaling.model import fit, held_out, placement
from fedmpi.analysis.scaling.points import Messages, Point, Work
from fedmpi.analysis.scaling.tables import series, strong, together, weak
from fedmpi.comm.placement import place

STEP, FLOP, CLIENT, EVALUATED, LATENCY, PER_BYTE = 2e-3, 1e-10, 1e-3, 2e-11, 5e-5, 1e-9
SERVER, RECORD, REST_ALONE, REST = 4e-3, 1e-3, 2e-3, 5e-3


def made(ranks, clients=8, **changes):
    """A run whose times follow the model exactly; its clients are all alike but for their FLOPs."""
    flops = 1e8 * 1.4 ** np.arange(clients)
    steps = 1.0 + np.arange(clients) % 3
    work = Work(steps, flops, flops / 2, STEP * steps + FLOP * flops)
    costs = np.rint(1.5 * flops).astype(int).tolist()
    placed = place(costs, range(1, ranks) if ranks > 1 else [0])
    evaluate = np.bincount(placed, CLIENT + EVALUATED * flops / 2, minlength=ranks)
    levels = int(np.ceil(np.log2(ranks))) if ranks > 1 else 0
    sizes = {"Bcast": 1e6, "Gatherv": 1e5 + 2e4 * ranks}
    calls = {"Bcast": 2.0, "Gatherv": 3.0}
    times = {name: LATENCY * calls[name] * levels + PER_BYTE * sizes[name] for name in sizes}
    messages = {name: Messages(calls[name], sizes[name], times[name]) for name in sizes}
    training = np.bincount(placed, work.seconds).max()
    seconds = training + evaluate.max() + SERVER + (REST_ALONE + RECORD if ranks == 1 else REST)
    seconds += sum(each.seconds for each in messages.values()) if ranks > 1 else 0.0
    partition = {"name": "iid", "clients": clients}
    options = {
        "folder": Path(f"runs/p{ranks}-{clients}"),
        "config": {"algorithm": "fedavg", "dataset": "synthetic", "partition": partition},
        "clients": clients,
        "ranks": ranks,
        "placement": placed,
        "round_seconds": np.full(5, seconds),
        "work": work,
        "evaluate": evaluate,
        "server": SERVER,
        "record": RECORD,
        "collectives": messages if ranks > 1 else {},
        "cores": 64,
        "rates": {},
        "started": "2026-01-01T00:00:00Z",
        "ended": "2026-01-01T01:00:00Z",
        "system": "EPYC, MPICH, cpu",
    }
    return Point(**{**options, **changes})


def test_the_fit_finds_the_coefficients_that_made_the_times_and_predicts_them():
    points = [made(ranks) for ranks in (1, 2, 3, 5, 9)]
    first, model = points[0], fit(points, points)
    found = (model.step, model.flop, model.client, model.evaluated_flop, model.rest_alone, model.rest)
    assert found == pytest.approx((STEP, FLOP, CLIENT, EVALUATED, REST_ALONE, REST))
    for network in (model.networks["Bcast"], model.networks["Gatherv"]):
        assert (network.latency, network.per_byte) == pytest.approx((LATENCY, PER_BYTE))
    assert (model.traffic["Gatherv"].fixed, model.traffic["Gatherv"].by_rank) == pytest.approx((1e5, 2e4))
    for each in points:
        assert model.seconds(each, each.ranks) == pytest.approx(each.seconds)
    assert held_out(points, points, 3) == pytest.approx(points[2].seconds)
    assert held_out(points[:2], points[:2], 2) is None
    training = STEP * first.work.steps + FLOP * first.work.train_flops
    evaluation = CLIENT + EVALUATED * first.work.train_flops / 2
    works = training + evaluation
    assert model.workers_of_use(first) == pytest.approx(works.sum() / works.max())
    parts = model.parts(first, 64)
    assert sum(parts.values()) == pytest.approx(model.seconds(first, 64))
    heaviest = training.max() + evaluation.max()
    assert parts["the busiest rank"] == pytest.approx(heaviest)  # a client a rank, the rest idle


def test_one_worker_keeps_the_model_and_says_nothing_of_what_more_of_them_send():
    kept = {"Bcast": Messages(2.0, 104.0, LATENCY), "Gatherv": Messages(3.0, 1e5, LATENCY)}
    points = [made(2, collectives=kept), made(3), made(5)]
    model = fit(points, points)
    assert model.traffic == fit(points[1:], points[1:]).traffic
    assert model.traffic_alone["Bcast"].fixed == pytest.approx(104)
    saved = model.communication(points[0], 3) - model.communication(points[0], 2)
    assert saved > 0.99e6 * model.networks["Bcast"].per_byte
    assert held_out(points, points, 2) is None and held_out(points, points, 3) is not None


def test_clients_of_a_prediction_are_placed_as_fedmpi_would():
    assert set(placement(made(1), 5).tolist()) == {1, 2, 3, 4}
    recorded = made(3, placement=np.array([1, 2] * 4))
    assert placement(recorded, 3).tolist() == [1, 2, 1, 2, 1, 2, 1, 2]


def test_strong_scaling_names_its_base_and_counts_the_server_or_not():
    points = [made(ranks) for ranks in (2, 3, 5)]
    (series,) = strong(points, with_server=True, wanted=[])
    assert (series.mode, series.base.ranks) == ("strong", 2)
    rows = series.rows
    assert rows[2].speedup == pytest.approx(points[0].seconds / points[2].seconds)
    assert rows[2].efficiency == pytest.approx(rows[2].speedup / (5 / 2))
    (workers,) = strong(points, with_server=False, wanted=[])
    assert workers.rows[2].efficiency == pytest.approx(rows[2].speedup / 4)


def test_more_ranks_are_predicted_and_marked_as_such():
    (series,) = strong([made(1)], with_server=True, wanted=[4, 9])
    assert [(row.ranks, row.seconds) for row in series.rows[1:]] == [(4, None), (9, None)]
    assert series.rows[2].predicted < series.rows[1].predicted < series.rows[0].predicted
    assert strong([made(1)], with_server=True, wanted=[]) == []


def test_repeats_are_shown_by_median_and_extremes():
    points = [made(1), *(made(2, round_seconds=np.full(5, seconds)) for seconds in (0.1, 0.3, 0.2))]
    (series,) = strong(points, with_server=True, wanted=[])
    row = series.rows[1]
    assert (row.runs, row.seconds, row.low, row.high) == (3, 0.2, 0.1, 0.3)


def test_weak_scaling_takes_runs_with_as_many_clients_per_rank():
    points = [made(2, clients=4), made(3, clients=8), made(5, clients=16), made(3, clients=10)]
    (growing,) = weak(points, with_server=False)
    assert growing.title == "fedavg on synthetic, 4 clients per worker"
    assert [(row.clients, row.ranks) for row in growing.rows] == [(4, 2), (8, 3), (16, 5)]
    assert growing.rows[2].efficiency == pytest.approx(points[0].seconds / points[2].seconds)
    assert weak(points, with_server=True) == []
    (found,) = series(points, with_server=True, wanted=[])  # so the server's rank counts the other way
    assert (found.title, found.with_server) == (growing.title, False)


def test_systems_are_kept_apart():
    points = [made(1), made(2, system="Xeon, MPICH, cpu")]
    assert series(points, with_server=True, wanted=[]) == []
    points += [made(2), made(4, system="Xeon, MPICH, cpu", round_seconds=np.full(5, 0.01))]
    first, second = series(points, with_server=True, wanted=[])
    assert first.title == "fedavg on synthetic, 8 clients (EPYC, MPICH, cpu)"
    assert [row.ranks for row in first.rows] == [1, 2]
    assert [row.ranks for row in second.rows] == [2, 4]


def test_cases_at_the_same_time():
    times = [("00:00", "01:00"), ("00:30", "01:30"), ("01:30", "02:00")]
    spans = [{"started": f"2026-01-01T{a}:00Z", "ended": f"2026-01-01T{b}:00Z"} for a, b in times]
    points = [made(1, folder=Path(f"runs/{number}"), **span) for number, span in enumerate(spans)]
    (found,) = together(points)
    assert (found.cases, found.most, found.ranks, found.seconds, found.per_hour) == (3, 2, (1,), 7200.0, 1.5)


@pytest.fixture
def runs(tmp_path, make_run):
    for ranks, slowness in ((1, 1.0), (2, 0.8), (4, 0.5)):
        make_run(tmp_path / "runs" / f"p{ranks}", [[0.5, 0.6]] * 4, ranks=ranks, slowness=slowness)
    return tmp_path / "runs"


def test_the_command_prints_tables_and_json_and_draws(fedmpi, runs, tmp_path):
    done = fedmpi("scaling", runs, "--predict", "8")
    assert done.returncode == 0, done.stderr
    title = "Strong scaling: fedavg on PROTEINS, 2 clients; base: 1 rank; the server's rank counts"
    assert title in done.stdout
    assert "Throughput" in done.stdout and "Model: training" in done.stdout
    assert "workers cannot help: the heaviest client has 1/" in done.stdout
    assert "A round on 8 ranks: the busiest rank " in " ".join(done.stdout.split())
    assert fedmpi("plot", "scaling", runs, "--image", tmp_path / "a.svg").returncode == 0
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    (series,) = json.loads(fedmpi("scaling", runs, "--json", "--without-server").stdout)["series"]
    # seconds of rounds 2 to 4 are 2, 3, 4 times the slowness; their median is 3
    found = [[row[name] for row in series["rows"]] for name in ("seconds", "speedup", "efficiency")]
    assert found == [pytest.approx(each) for each in ([3.0, 2.4, 1.5], [1, 1.25, 2], [1, 1.25, 2 / 3])]


def test_runs_of_several_systems_are_named_and_have_no_common_speedup(fedmpi, tmp_path, make_run):
    for ranks, processor in ((1, "EPYC"), (2, "Xeon")):
        make_run(tmp_path / f"p{ranks}", [[0.5, 0.6]] * 4, ranks=ranks, provenance={"cpu_model": processor})
    done = fedmpi("scaling", tmp_path)
    shown = " ".join(done.stdout.split())
    words = "Runs of several systems, each by itself, no speedup across them: "
    assert shown.startswith(f"{words}EPYC, -, - (1 run); Xeon, -, - (1 run)")
    assert "Strong scaling" not in shown
    assert "No case was run on several numbers of ranks of one system" in shown


def test_large_rates_are_shown_in_full(fedmpi, tmp_path, make_run):
    make_run(tmp_path / "p1", [[0.5, 0.6]] * 4, slowness=1 / 30000)
    done = fedmpi("scaling", tmp_path)
    # two clients a round; rounds 2 to 4 take 9 / 30,000 seconds and count 12 model GFLOP
    row = next(line for line in done.stdout.splitlines() if line.startswith("p1: fedavg"))
    assert row.split()[-4:-2] == ["10,000", "20,000"] and row.split()[-1] == "40,000"


def test_what_is_left_out_is_named_as_a_copied_folder_which_is_no_further_measurement(
    fedmpi, tmp_path, make_run
):
    run = make_run(tmp_path / "runs" / "p1", [[0.5, 0.6]] * 4, provenance={"host": "node1"})
    copy = shutil.copytree(run, tmp_path / "runs" / "p2")
    bad = make_run(tmp_path / "runs" / "p3", [[0.5, 0.6]], status="diverged")
    done = fedmpi("scaling", tmp_path / "runs", "--json")
    assert done.returncode == 2
    lines = [f"{copy}: a copy of {run}, left out", f"{bad}: diverged, 1 rounds, left out"]
    assert sorted(done.stderr.splitlines()) == [f"fedmpi: {line}" for line in lines]
    assert len(json.loads(done.stdout)["throughput"]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "none: no such file or folder"),
        (["runs", "--predict", "a"], "--predict a: give whole numbers from 1 to 99,999, such as 8,16"),
    ],
)
def test_mistakes(fedmpi, runs, arguments, words):
    done = fedmpi("scaling", *arguments)
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.count("\n") == 1
