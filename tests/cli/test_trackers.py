"""Trackers beside the record: what TensorBoard, MLflow and W&B have is read back by their own readers."""

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from fedmpi.cli.trackers import MLflow, identity
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.cli.refusals import refused

ROUNDS = 4


@pytest.fixture
def tracked(fedmpi, tiny_suite, tmp_path):
    """Return a function that runs a case with a tracker, and returns its record and what was printed."""

    def run(name):
        done = fedmpi("run", tiny_suite, "--case", 0, "--set", f"track={name}", "--out", "runs", code=0)
        return load_run(tmp_path / "runs" / "fedavg"), done

    return run


@pytest.fixture
def local_store(tmp_path, monkeypatch):
    """Have MLflow keep its runs in a folder."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())


def means(run):
    return [(round + 1, row.mean()) for round, row in enumerate(run.results["test_accuracy"])]


def stored(content):
    """Yield the records of a W&B file: LevelDB's log behind 7 bytes, blocks of 32 kB, fragments in them."""
    position, whole = 7, b""
    while position < len(content):
        if (room := -position % 32768) < 7 and room:
            position += room
            continue
        size, kind = int.from_bytes(content[position + 4 : position + 6], "little"), content[position + 6]
        whole += content[position + 7 : position + 7 + size]
        position += 7 + size
        if kind in (1, 4):  # whole, or the last fragment
            yield whole
            whole = b""


def test_tensorboard_reads_each_round_in_the_runs_folder(tracked):
    run, _ = tracked("tensorboard")
    found = EventAccumulator(str(run.folder))
    found.Reload()
    scalars = [(each.step, each.value) for each in found.Scalars("mean/test_accuracy")]
    assert scalars == [(step, pytest.approx(value)) for step, value in means(run)]
    assert len(found.Scalars("time/round_seconds")) == ROUNDS


def test_mlflow_has_settings_and_rounds_and_goes_on_with_a_resumed_run(tracked, local_store):
    from mlflow import MlflowClient

    run, _ = tracked("mlflow")
    client = MlflowClient()
    experiment = client.get_experiment_by_name("tiny").experiment_id
    (found,) = client.search_runs([experiment])
    assert (found.info.run_name, found.info.status) == ("fedavg", "FINISHED")
    assert found.data.params["dataset.synthetic.domains"] == "3"
    history = client.get_metric_history(found.info.run_id, "mean/test_accuracy")
    assert [(each.step, each.value) for each in history] == means(run)
    again = MLflow()
    again.begin(run)
    again.end(complete=False)
    (found,) = client.search_runs([experiment])
    assert found.info.status == "KILLED"


def test_wandb_has_settings_and_rounds_offline(fedmpi_process, tiny_suite, tmp_path):
    process = fedmpi_process("run", tiny_suite, "--case", 0, "--set", "track=wandb", "--out", "runs")
    assert process.communicate()[1].count("warning") == 0 and process.returncode == 0
    run = load_run(tmp_path / "runs" / "fedavg")
    (file,) = tmp_path.glob(f"wandb/offline-run-*/run-{identity(run)}.wandb")
    from wandb.proto.wandb_internal_pb2 import Record

    records = [Record.FromString(data) for data in stored(file.read_bytes())]
    logged = [
        float(item.value_json)
        for record in records
        for item in record.history.item
        if (item.key or ".".join(item.nested_key)) == "mean/test_accuracy"
    ]
    assert logged == [pytest.approx(value) for _, value in means(run)]
    (begun,) = (record.run for record in records if record.HasField("run"))
    assert (begun.project, begun.display_name) == ("tiny", "fedavg")


def test_a_tracker_that_fails_ends_no_run_and_changes_no_bit(
    tracked, monkeypatch, fedmpi, tiny_suite, tmp_path
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nowhere:")
    run, done = tracked("mlflow")
    assert 'warning: track = "mlflow": UnsupportedModelRegistryStoreURIException' in done.stdout
    fedmpi("run", tiny_suite, "--case", 0, "--out", "plain", code=0)
    assert differences(run.folder, tmp_path / "plain" / "fedavg") == []


def test_a_tracker_that_is_missing_is_said_before_the_run(fedmpi, tiny_suite, monkeypatch):
    monkeypatch.setattr("fedmpi.registry.checks.settings.find_spec", lambda name: None)
    done = fedmpi("run", tiny_suite, "--set", "track=wandb")
    refused(done, "--set track: wandb is missing: pip install 'fedmpi[track]'")
