"""A run ends before its last round where its validation score no longer rises."""

from unittest.mock import patch

import numpy as np
import pytest

from fedmpi.metrics.metric import ACCURACY
from fedmpi.runs.patience import Patience
from fedmpi.runs.reporting import RoundReport
from fedmpi.runs.run_folder import RunFolder
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.started import runs_of

SETTINGS = ("algorithm=fedavg", "rounds=60", "evaluation.patience=3")


def decisions(rounds, scores):
    """Return the rounds that are run, the last being that with which the run ends."""
    patience = Patience(rounds, ACCURACY)
    for number, score in enumerate(scores):
        ended = patience.decide(number)
        patience.note(RoundReport(number, {"val_accuracy": np.array([score, np.nan])}, {}, {}))
        if ended:
            return number + 1
    return len(scores)


def test_it_ends_with_the_round_after_so_many_without_a_better_score():
    assert decisions(2, [0.1, 0.5, 0.5, 0.4, 0.3, 0.2, 0.9]) == 5
    assert decisions(3, [0.1, 0.5, 0.5, 0.4, 0.3, 0.2, 0.9]) == 6
    assert decisions(2, [0.1, 0.2, 0.1, 0.3, 0.2, 0.4]) == 6
    assert decisions(0, [0.5, 0.1, 0.1, 0.1]) == 4


def test_rounds_without_scores_are_no_better_and_the_first_score_counts_from_its_round():
    nan = np.nan
    assert decisions(2, [nan, nan, nan, 0.2, nan, nan, nan, nan]) == 7


def test_a_checkpoint_has_what_it_knows():
    first, second = Patience(2, ACCURACY), Patience(2, ACCURACY)
    first.note(RoundReport(4, {"val_accuracy": np.array([0.25])}, {}, {}))
    second.restore(first.state())
    assert first.state()["patience"].tolist() == second.state()["patience"].tolist() == [0.25, 4.0, 0.0]
    assert (second.decide(6), second.decide(7), second.ended) == (False, True, True)
    assert Patience(0, ACCURACY).state() == {}


def test_a_run_is_complete_as_the_rounds_before_are_those_of_a_longer_run(fedmpi, tiny_suite, tmp_path):
    (run,) = runs_of(fedmpi, tmp_path, tiny_suite, *SETTINGS).values()
    (whole,) = runs_of(fedmpi, tmp_path, tiny_suite, *SETTINGS[:2]).values()
    scores, done = run.results["val_accuracy"].mean(axis=1), run.rounds_completed
    assert run.status == "complete" and done == int(np.argmax(scores[:-1])) + 1 + 3 + 1 < 60
    for name, values in run.results.items():
        assert np.array_equal(values, whole.results[name][:done], equal_nan=True), name
    fedmpi("run", "--resume", run.folder, code=0)


@pytest.mark.parametrize("checkpoints", ["kept", "removed"])
def test_one_that_is_killed_at_its_very_end_ends_there_when_it_goes_on(
    fedmpi, tiny_suite, tmp_path, checkpoints
):
    settings = (*SETTINGS, f"checkpoints={checkpoints}")
    (run,) = runs_of(fedmpi, tmp_path, tiny_suite, *settings).values()
    arguments = ["run", tiny_suite, *(part for each in settings for part in ("--set", each))]
    with patch.object(RunFolder, "finish", side_effect=KeyboardInterrupt):
        fedmpi(*arguments, "--out", tmp_path / "killed")
    (killed,) = (each for each in (tmp_path / "killed").iterdir() if each.is_dir())
    assert load_run(killed).status != "complete"
    fedmpi(*arguments, "--out", tmp_path / "killed", "--resume", code=0)
    assert load_run(killed).status == "complete" and differences(run.folder, killed) == []


def test_an_unsupervised_run_has_nothing_to_judge_by(fedmpi, tmp_path):
    path = tmp_path / "suite.toml"
    path.write_text(
        'name = "a"\n[case]\nobjective = "fclg"\nmodel = "gin-encoder"\nshare = "all"\nevaluation.patience = 2\n'
        'algorithm = "fedavg"\npartition = { name = "dominant-share", clients = 4 }\n'
        "dataset = { synthetic = { domains = 1, graphs = 90 } }\n"
    )
    done = fedmpi("run", path, code=2)
    assert "evaluation.patience" in done.stderr and "use 0" in done.stderr
