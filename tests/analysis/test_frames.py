import pytest

from fedmpi.analysis import load
from fedmpi.errors import BadInput
from fedmpi.store.record import RunRecord
from tests.analysis.tasks import FIELDS

ACCURACY = [[0.5, 0.6], [0.9, 0.8], [0.7, 0.7]]


@pytest.fixture
def frames(tmp_path, make_run):
    make_run(tmp_path / "suite" / "a", ACCURACY)
    make_run(tmp_path / "suite" / "b", ACCURACY[:2], seed=42, status="diverged")
    return load(tmp_path / "suite")


def test_a_row_per_run_client_round_rank_and_collective(frames):
    assert frames.runs["seed"].tolist() == [10, 42]
    assert frames.runs["status"].tolist() == ["complete", "diverged"]
    assert frames.runs["test_accuracy"].tolist() == pytest.approx([0.7, 0.85])
    assert frames.left_out == ()
    second = frames.clients[frames.clients["seed"] == 42]
    assert second["client"].tolist() == ["client-0", "client-1"]
    assert second["test_accuracy"].tolist() == [0.9, 0.8]
    assert len(frames.rounds) == 3 * 2 + 2 * 2
    row = frames.rounds.query("seed == 10 and round == 2 and client == 'client-1'").iloc[0]
    assert (row["test_accuracy"], row["model_flops"], row["algorithm"]) == (0.8, 2_000_000_000, "fedavg")
    assert frames.times["round_seconds"].tolist() == [1.0, 2.0, 3.0, 1.0, 2.0]
    assert frames.times["ranks"].tolist() == [2] * 5
    ranks = frames.ranks.query("seed == 42 and rank == 1")
    assert ranks["train_seconds"].tolist() == [0.25, 0.25]
    assert frames.collectives.groupby("run")["bytes"].sum().tolist() == [18_000_000, 12_000_000]
    assert len(frames.tasks) == 0


def test_of_rounds_in_two_attempts_the_newest_counts(tmp_path, make_rows):
    about = {"config": {}, "clients": ["c"], "rounds": 2, "partition": {}, "extra": FIELDS["accuracy"]}
    with RunRecord.create(tmp_path / "a", **about) as record:
        for ranks, rounds in ((2, [0, 1]), (1, [1])):
            record.begin_attempt(rounds[0], ranks, ["Bcast"], {})
            for index in rounds:
                record.write_round(index, *make_rows(index, [0.5], ranks))
    frames = load(tmp_path / "a")
    assert frames.times[["round", "life", "ranks"]].to_numpy().tolist() == [[1, 0, 2], [2, 1, 1]]
    assert frames.ranks[["round", "rank"]].to_numpy().tolist() == [[1, 0], [1, 1], [2, 0]]


def test_a_run_is_read_once_and_what_cannot_be_read_is_named_and_alone_an_error(tmp_path, make_run):
    folder = make_run(tmp_path / "suite" / "a", ACCURACY)
    frames = load(folder, tmp_path / "suite", folder / "run.h5", tmp_path / "none")
    assert len(frames.runs) == 1
    assert len(frames.left_out) == 1 and "none: no such file or folder" in frames.left_out[0]
    with pytest.raises(BadInput, match="none: no such file or folder"):
        load(tmp_path / "none")


def test_a_suites_runs_are_found_by_its_name_and_by_its_file(tmp_path, make_run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "results" / "runs" / "mine" / "suite" / "a", ACCURACY)
    (tmp_path / "s.toml").write_text('name = "mine/suite"\n[case]\nrounds = 3\n')
    for name in ("mine/suite", "s.toml"):
        assert load(name).runs["run"].tolist() == ["results/runs/mine/suite/a"]


def test_scores_over_all_clients_and_by_task(tmp_path, make_run, make_scored):
    make_run(tmp_path / "a", ACCURACY)
    make_scored(tmp_path / "b", "roc_auc", [[0.25, 0.5], [0.5, 0.75]], names=("x", "y"))
    frames = load(tmp_path)
    scored = frames.rounds[frames.rounds["dataset"] == "BBBP"]
    assert scored["test_roc_auc"].tolist() == [0.375, 0.375, 0.625, 0.625]
    assert "test_task_roc_auc" not in scored
    assert frames.tasks[["round", "task", "test_roc_auc", "val_prc_auc"]].to_numpy().tolist() == [
        [1, "x", 0.25, 0.125],
        [1, "y", 0.5, 0.25],
        [2, "x", 0.5, 0.25],
        [2, "y", 0.75, 0.375],
    ]
    assert set(frames.tasks["run"]) == {str(tmp_path / "b")}
    assert frames.runs["test_prc_auc"].tolist()[1] == 0.3125


def test_frames_say_what_they_hold_in_at_most_20_lines(tmp_path, make_run):
    for number in range(12):
        make_run(tmp_path / "suite" / f"run-{number:02d}", ACCURACY[:1], seed=number)
    (tmp_path / "empty").mkdir()
    lines = repr(load(tmp_path / "suite", tmp_path / "empty")).splitlines()
    assert lines[0] == "Frames of 12 runs: 12 complete"
    assert lines[2] == "  .clients      a row per run and client, at the end"
    assert lines[8] == f"  <Run {tmp_path}/suite/run-00: complete, 1 of 1 rounds>"
    assert lines[-2:] == ["  and 4 more, listed in .runs", "  1 left out, named in .left_out"]
    assert len(lines) == 18


def test_a_notebook_shows_a_row_for_each_run_and_the_names_of_the_frames(frames):
    shown = frames._repr_html_()
    assert shown.count("<tr>") == 2
    assert "<p>Frames: .runs, .clients, .rounds, .tasks, .times, .ranks, .collectives</p>" in shown
