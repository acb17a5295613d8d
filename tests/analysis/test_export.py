"""Exports, read back by the readers of TensorBoard and MLPerf."""

import importlib.resources
import json
import struct
from dataclasses import replace

import pytest

from fedmpi.analysis.export import mllog, tensorboard
from fedmpi.store.reader import load_run
from tests.analysis.tasks import begun

ACCURACY = [[0.5, 0.75], [float("nan"), 1.0], [0.25, 0.5]]


@pytest.fixture
def run(tmp_path, make_run):
    settings = {"batch_size": 128, "optimizer": {"name": "adam", "lr": 0.001, "weight_decay": 0.0}}
    return load_run(make_run(tmp_path / "case", ACCURACY, settings=settings))


def test_tensorboard_reads_the_scalars_by_round(run, tmp_path):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    file = tensorboard.write(run, tmp_path / "tb")
    assert file.parent == tmp_path / "tb"
    found = accumulators.EventAccumulator(str(file.parent))
    found.Reload()
    mean = found.Scalars("mean/test_accuracy")
    assert [(each.step, each.value) for each in mean] == [(1, 0.625), (2, 1.0), (3, 0.375)]
    assert [each.step for each in found.Scalars("clients/client-0/test_accuracy")] == [1, 3]
    times = [each.wall_time for each in found.Scalars("time/round_seconds")]
    assert times[1] - times[0] == pytest.approx(2.0)


def test_records_are_framed_as_documented(run, tmp_path):
    assert tensorboard.crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C
    data = tensorboard.write(run, tmp_path).read_bytes()
    place, count = 0, 0
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        place, count = place + 12 + length + 4, count + 1
    assert place == len(data)
    assert count == 1 + sum(1 for _ in tensorboard.scalars(run))


def test_mlperf_reads_the_lines_and_its_rules_hold(run, tmp_path):
    parser = pytest.importorskip("mlperf_logging.compliance_checker.mlp_parser")
    from mlperf_logging.compliance_checker.mlp_compliance import ComplianceChecker

    file = tmp_path / "log.txt"
    file.write_text("\n".join(mllog.lines(run)) + "\n")
    found, failed = parser.parse_file(str(file), "3.0.0")
    assert failed == []
    accuracies = [line.value["value"] for line in found if line.key == "eval_accuracy"]
    assert accuracies == [0.625, 1.0, 0.375]
    # The rules of one benchmark of theirs are not ours: those for all benchmarks are.
    rules = importlib.resources.files("mlperf_logging.compliance_checker") / "hpc_3.0.0" / "common.yaml"
    kept = [line for line in rules.read_text().splitlines() if "enqueue_config" not in line]
    (tmp_path / "rules.yaml").write_text("\n".join(kept))
    checker = ComplianceChecker("hpc", "3.0.0", quiet=True, werror=True)
    assert checker.check_file(str(file), str(tmp_path / "rules.yaml"))


def test_every_line_is_marked_and_json(run):
    lines = list(mllog.lines(run))
    bodies = [json.loads(line.removeprefix(":::MLLOG ")) for line in lines]
    assert all(line.startswith(":::MLLOG {") for line in lines)
    assert {tuple(body) for body in bodies} == {
        ("namespace", "time_ms", "event_type", "key", "value", "metadata")
    }
    assert bodies[-1]["key"] == "run_stop" and bodies[-1]["metadata"]["status"] == "success"
    assert bodies[-1]["time_ms"] - bodies[0]["time_ms"] == 6000


def bodies_of(run):
    return [json.loads(line.removeprefix(":::MLLOG ")) for line in mllog.lines(run)]


def test_mlperf_is_told_what_was_measured_and_no_more(run):
    bodies = bodies_of(run)
    values = {body["key"]: body["value"] for body in bodies}
    assert values["cache_clear"] is False
    assert "global_batch_size" not in values and values["fedmpi_client_batch_size"] == 128
    (started,) = {body["time_ms"] for body in bodies if body["key"] in ("init_start", "init_stop")}
    assert not any(body["metadata"]["measured"] for body in bodies if body["key"].startswith("init_"))
    times = [(body["key"], body["time_ms"] - started) for body in bodies if body["key"].startswith("eval_st")]
    # Rounds end after 1, 3 and 6 s; the slower of two ranks evaluated for half a second.
    assert times == [
        ("eval_start", 500), ("eval_stop", 1000), ("eval_start", 2500), ("eval_stop", 3000),
        ("eval_start", 5500), ("eval_stop", 6000),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([("a", "cpu"), ("a", "cpu")], 0),
        ([("a", "cuda:0: H100"), ("a", "cuda:1: H100"), ("b", "cuda:0: H100")], 2),
        ([("a", "cuda:0: H100"), ("a", "cuda:0: H100")], 1),
    ],
)
def test_mlperf_has_the_gpus_that_ranks_of_a_node_use(run, ranks, expected):
    listed = [{"host": host, "device": device} for host, device in ranks]
    provenance = {"device": ranks[0][1], "mpi": {"ranks": listed}}
    changed = replace(run, attempts=(replace(run.attempts[0], provenance=provenance),))
    (found,) = (body["value"] for body in bodies_of(changed) if body["key"] == "accelerators_per_node")
    assert found == expected


@pytest.mark.parametrize("name", ["roc_auc", "rmse"])
def test_mlperf_has_the_validation_score_by_which_a_run_is_judged(tmp_path, make_scored, name):
    run = load_run(make_scored(tmp_path / "a", name, [0.5, 0.75], val=[0.25, float("nan")]))
    bodies = bodies_of(run)
    found = {
        body["key"]: (body["value"], body["metadata"]["epoch_num"])
        for body in bodies
        if body["value"] and body["key"].startswith("eval_") and body["key"] != "eval_samples"
    }
    assert found == {f"eval_{name}": (0.25, 1)}


def test_tensorboard_has_scores_of_all_clients_and_of_each(tmp_path, make_scored):
    run = load_run(make_scored(tmp_path / "a", "rmse", [3.0, 2.0]))
    found = {(tag, step): value for tag, step, _, value in tensorboard.scalars(run)}
    assert [found["score/test_rmse", step] for step in (1, 2)] == [3.0, 2.0]
    assert found["score/val_r2", 2] == 1.0
    assert found["clients/a/test_rmse", 2] == 2.0
    assert not any("accuracy" in tag for tag, _ in found if tag.startswith("score"))


def test_the_command_names_what_it_leaves_out(fedmpi, tmp_path, make_run):
    make_run(tmp_path / "runs" / "a", [[0.5]], status="interrupted")
    begun(tmp_path / "runs" / "b")
    done = fedmpi("export", tmp_path / "runs", "--mllog", tmp_path / "logs", "--tensorboard", tmp_path / "tb")
    assert done.returncode == 2
    assert done.stdout == f"1 runs exported to {tmp_path / 'tb'}, {tmp_path / 'logs'}\n"
    assert done.stderr == f"fedmpi: {tmp_path / 'runs' / 'b'}: no round is finished, left out\n"
    assert '"status": "aborted"' in (tmp_path / "logs" / "a.txt").read_text()


def test_runs_of_one_name_are_written_by_the_path_below_their_common_folder(fedmpi, tmp_path, make_run):
    for repetition, score in (("1", 0.25), ("2", 0.5)):
        make_run(tmp_path / "sys" / repetition / "fedavg", [[score]])
    logs, events = tmp_path / "logs", tmp_path / "tb"
    done = fedmpi("export", tmp_path / "sys", "--mllog", logs, "--tensorboard", events)
    assert (done.returncode, done.stdout) == (0, f"2 runs exported to {events}, {logs}\n")
    written = {str(path.relative_to(logs)): path.read_text() for path in logs.rglob("*.txt")}
    assert written.keys() == {"1/fedavg.txt", "2/fedavg.txt"}
    assert '"value": 0.25' in written["1/fedavg.txt"] and '"value": 0.5' in written["2/fedavg.txt"]
    assert {str(path.parent.relative_to(events)) for path in events.rglob("events.*")} == {
        "1/fedavg",
        "2/fedavg",
    }


def test_mistakes(fedmpi, tmp_path, make_run):
    make_run(tmp_path / "a", [[0.5]])
    done = fedmpi("export", tmp_path / "a")
    assert done.returncode == 2 and "say --tensorboard FOLDER, --mllog FOLDER, or both" in done.stderr
    done = fedmpi("export", tmp_path / "a", "--mllog", "/proc/none")
    assert done.returncode == 2 and done.stderr.startswith("fedmpi: /proc/none: cannot write it")
