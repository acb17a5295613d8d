"""Exports, read back by the reader of TensorBoard."""

import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from fedmpi.analysis import tensorboard
from fedmpi.errors import BadInput
from fedmpi.store.reader import load_run
from tests.analysis.tasks import begun


def test_tensorboard_reads_the_scalars_by_round(tmp_path, make_run):
    run = load_run(make_run(tmp_path / "case", [[0.5, 0.75], [float("nan"), 1.0], [0.25, 0.5]]))
    file = tensorboard.write(run, tmp_path / "tb")
    assert file.parent == tmp_path / "tb"
    found = EventAccumulator(str(file.parent))
    found.Reload()
    mean = found.Scalars("mean/test_accuracy")
    assert [(each.step, each.value) for each in mean] == [(1, 0.625), (2, 1.0), (3, 0.375)]
    assert [each.step for each in found.Scalars("clients/client-0/test_accuracy")] == [1, 3]
    times = [each.wall_time for each in found.Scalars("time/round_seconds")]
    assert times[1] - times[0] == pytest.approx(2.0)


def test_without_tensorboard_it_says_what_to_install(tmp_path, make_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(BadInput, match="pip install tensorboard"):
        tensorboard.write(load_run(make_run(tmp_path / "case", [[0.5]])), tmp_path)


def test_tensorboard_has_scores_of_all_clients_and_of_each(tmp_path, make_scored):
    run = load_run(make_scored(tmp_path / "a", "rmse", [3.0, 2.0]))
    found = {(tag, step): value for tag, step, _, value in tensorboard.scalars(run)}
    assert [found["score/test_rmse", step] for step in (1, 2)] == [3.0, 2.0]
    assert found["score/val_r2", 2] == 1.0
    assert found["clients/a/test_rmse", 2] == 2.0
    assert not any("accuracy" in tag for tag, _ in found if tag.startswith("score"))


def test_runs_of_one_name_are_written_by_the_path_below_their_common_folder(fedmpi, tmp_path, make_run):
    for repetition, score in (("1", 0.25), ("2", 0.5)):
        make_run(tmp_path / "sys" / repetition / "fedavg", [[score]], status="interrupted")
    begun(tmp_path / "sys" / "3" / "fedavg")
    events = tmp_path / "tb"
    done = fedmpi("export", tmp_path / "sys", "--tensorboard", events)
    assert (done.returncode, done.stdout) == (2, f"2 runs exported to {events}\n")
    assert done.stderr == f"fedmpi: {tmp_path / 'sys' / '3' / 'fedavg'}: no round is finished, left out\n"
    written = {str(path.parent.relative_to(events)) for path in events.rglob("events.*")}
    assert written == {"1/fedavg", "2/fedavg"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "say what to write: --tensorboard DIR, or --model FILE"),
        (["--tensorboard", "/proc/none"], "fedmpi: /proc/none: cannot write it"),
    ],
)
def test_mistakes(fedmpi, tmp_path, make_run, options, words):
    done = fedmpi("export", make_run(tmp_path / "a", [[0.5]]), *options)
    assert done.returncode == 2 and words in done.stderr
