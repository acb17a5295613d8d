"""What a run may and may not be continued with."""

import os
import shutil
import signal
from contextlib import contextmanager

import h5py
import numpy as np
import pytest

from fedmpi.client.client import Client
from fedmpi.models.neighgen_training import NeighGenTraining
from fedmpi.runs import run_folder
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.cli.own_graphs import write_graphs
from tests.cli.refusals import refused
from tests.saved import newest, save
from tests.started import sets


@contextmanager
def signalled(condition, number=signal.SIGUSR1):
    """Within, a signal comes whenever a client trains and a condition on it, the case and the round holds."""
    original = Client.train_locally

    def train(self, case, algorithm, round):
        if condition(self, case, round):
            os.kill(os.getpid(), number)
        return original(self, case, algorithm, round)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "train_locally", train)
        yield


@pytest.fixture
def interrupted(fedmpi, tiny_suite, tmp_path):
    """A run that stopped after its second round; a function gives other arguments to it."""

    def make(*arguments, number=signal.SIGUSR1):
        with signalled(lambda client, case, round: round == 1, number):
            done = fedmpi("run", tiny_suite, "--case", "0", "--out", "runs", *arguments)
        assert done.returncode == 75, done.stderr
        (folder,) = (tmp_path / "runs").iterdir()
        assert load_run(folder).rounds_completed == 2
        return folder

    return make


@pytest.fixture
def whole(fedmpi, tiny_suite, tmp_path):
    """Return a function that runs the same case undisturbed and returns its folder."""

    def make(*arguments):
        fedmpi("run", tiny_suite, "--case", "0", "--out", "whole", *arguments, code=0)
        (folder,) = (tmp_path / "whole").iterdir()
        return folder

    return make


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_finishes_the_round_and_resume_goes_on(fedmpi, interrupted, tiny_suite, whole, number):
    folder = interrupted(number=number)
    assert load_run(folder).status == "interrupted"
    checkpoint = newest(folder)
    assert checkpoint.meta.rounds == 2
    for state in checkpoint.states.values():  # parameters, their two moments, Adam's steps
        assert state.dtype == np.float32
        assert state[-2] == 2.0
        assert (len(state) - 2) // 3 % 16 == 0
    listed = fedmpi("run", tiny_suite, "--case", "0", "--out", "runs", "--list").stdout
    assert "(interrupted after round 2 of 4)" in listed
    fedmpi("run", "--resume", folder, code=0)
    assert len(load_run(folder).attempts) == 2
    assert differences(whole(), folder) == []


def test_data_that_changed_are_refused(fedmpi, interrupted, tiny_suite, tmp_path):
    write_graphs(tmp_path, "OWN", [0, 1] * 30)
    options = sets("dataset=own/OWN", "partition=iid", "partition.clients=2")
    made = '{ name = "synthetic", synthetic = { domains = 3, graphs = 40 } }'
    tiny_suite.write_text(tiny_suite.read_text().replace(made, '"synthetic"'))
    folder = interrupted("--data", "data", *options)
    write_graphs(tmp_path, "OWN", [1, 0] * 29 + [0, 0])
    refused(fedmpi("run", "--resume", folder, "--data", "data"), "the data have changed")
    assert load_run(folder).status == "interrupted"


def cut_short(record):
    record.write_bytes(record.read_bytes()[:4000])


def with_another_number(record):
    with h5py.File(record, "r+") as file:
        file["rounds/test_accuracy"][0, 0] = 3e181


@pytest.mark.long
@pytest.mark.parametrize(
    ("damage", "resumed"),
    [(cut_short, ("tiny.toml", "--case", "0", "--out", "runs")), (with_another_number, ("runs/fedavg",))],
)
def test_a_damaged_record_is_restored_from_the_log(fedmpi, interrupted, whole, damage, resumed):
    folder = interrupted()
    damage(folder / "run.h5")
    fedmpi("run", *resumed, "--resume", code=0)
    assert differences(whole(), folder) == []


def test_without_a_checkpoint_all_is_computed_again_and_must_agree(fedmpi, interrupted):
    folder = interrupted()
    shutil.rmtree(folder / "checkpoints")
    done = fedmpi("run", "--resume", folder, code=0)
    assert "begun anew, because there is no checkpoint: its 2 recorded rounds are run again" in done.stdout
    run = load_run(folder)
    assert [attempt.first_round for attempt in run.attempts] == [0, 0]
    assert run.status == "complete"


@pytest.mark.long
def test_a_recomputed_round_that_differs_stops_the_run(fedmpi, interrupted, monkeypatch):
    folder = interrupted()
    shutil.rmtree(folder / "checkpoints")
    original = Client.train_locally

    def other(self, case, algorithm, round):
        self.row.mul_(1.0001)
        return original(self, case, algorithm, round)

    monkeypatch.setattr(Client, "train_locally", other)
    done = fedmpi("run", "--resume", folder, code=1)
    assert "differs from the record" in done.stderr
    assert done.stderr.count("\n") == 1


def rewrite(folder, token, rounds=2, server=dict, states=dict, **about):
    """Save the run's checkpoint anew, whole but with other arrays or as that of another run."""
    found = newest(folder)
    meta = found.meta.model_copy(update={"rounds": rounds, **about})
    save(folder / "checkpoints", meta, server(found.server), states(found.states), token=token)


def passed_over(messages):
    return [message.partition(" is passed over: ")[2] for message in messages]


def test_checkpoints_of_another_run_and_ahead_of_the_record_are_passed_over(fedmpi, interrupted, caplog):
    folder = interrupted()
    rewrite(folder, "0000000a", rounds=3)
    rewrite(folder, "0000000b", begun="2020-01-01T00:00:00Z")
    fedmpi("run", "--resume", folder, code=0)
    assert passed_over(caplog.messages) == ["it is another run's", "it is ahead of the record"]
    assert [attempt.first_round for attempt in load_run(folder).attempts] == [0, 0]


@pytest.mark.parametrize(
    ("which", "words"),
    [("server", "its groups have numbers outside of 0"), ("states", "the state of client 1 is float32 [")],
)
def test_a_checkpoint_that_does_not_fit_is_passed_over(fedmpi, interrupted, caplog, which, words):
    folder = interrupted()
    if which == "server":
        rewrite(folder, "0000000a", server=lambda arrays: {**arrays, "group": np.full(3, 7)})
    else:
        rewrite(folder, "0000000a", states=lambda states: {**states, 1: states[1][:-1]})
    fedmpi("run", "--resume", folder, code=0)
    (text,) = passed_over(caplog.messages)
    assert text.startswith(words)
    run = load_run(folder)
    assert (run.status, [attempt.first_round for attempt in run.attempts]) == ("complete", [0, 2])


def test_a_run_killed_after_its_last_checkpoint_is_completed(fedmpi, tiny_suite, tmp_path, monkeypatch):
    original = run_folder.RunFolder.finish
    monkeypatch.setattr(run_folder.RunFolder, "finish", lambda self, status: None)
    fedmpi("run", tiny_suite, "--case", "0", "--out", "runs")
    folder = tmp_path / "runs" / "fedavg"
    assert load_run(folder).status != "complete"
    monkeypatch.setattr(run_folder.RunFolder, "finish", original)
    fedmpi("run", "--resume", folder, code=0)
    run = load_run(folder)
    assert (run.status, run.rounds_completed, len(run.attempts)) == ("complete", 4, 1)


def test_a_folder_whose_first_event_was_cut_off_is_no_run_yet(fedmpi, tiny_suite, tmp_path):
    folder = tmp_path / "runs" / "fedavg"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"event": "start", "con')
    fedmpi("run", tiny_suite, "--case", "0", "--out", "runs", "--resume", code=0)


def test_other_options_another_numerics_version_and_a_cut_log_are_refused(fedmpi, interrupted, monkeypatch):
    folder = interrupted()
    for extra in (["--set", "rounds=9"], ["--case", "0"], ["--out", "other"], ["--list"]):
        refused(fedmpi("run", "--resume", folder, *extra), "takes no --set, --case, --out or --list")
    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "NUMERICS_VERSION", 99)
        refused(fedmpi("run", "--resume", folder), "numerics version 2, this is 99")
    log, record = folder / "events.jsonl", (folder / "run.h5").read_bytes()
    log.write_bytes(b"".join(log.read_bytes().splitlines(True)[:2]))
    refused(fedmpi("run", "--resume", folder), "was cut")
    assert (folder / "run.h5").read_bytes() == record


def test_a_signal_in_a_cases_last_round_keeps_the_next_case_from_starting(fedmpi, tiny_suite, tmp_path):
    with signalled(lambda client, case, round: round == case.rounds - 1):
        done = fedmpi("run", tiny_suite, "--out", "runs")
    assert done.returncode == 75
    assert "stopped by a signal before runs/fedprox" in done.stderr
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["fedavg"]
    assert load_run(tmp_path / "runs" / "fedavg").status == "complete"


MENDED = """
name = "mended"
[case]
dataset = "synthetic-nodes"
partition = { name = "louvain", clients = 3, parts = "60/20/20" }
share = "all"
model = "sage"
rounds = 2
algorithm = { name = "fedsage-plus", epochs = 3, exchanges = 1, latent = 8, generator_hidden = [8, 8] }
"""


def test_a_signal_ends_the_phase_before_the_rounds(fedmpi, tmp_path, monkeypatch):
    (tmp_path / "mended.toml").write_text(MENDED)
    command = ("run", "mended.toml", "--resume", "--out")
    fedmpi(*command, "whole", code=0)
    steps, step = [], NeighGenTraining._step

    def asked_in_the_second(self, *arguments):
        step(self, *arguments)
        steps.append(self)
        if len(steps) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(NeighGenTraining, "_step", asked_in_the_second)
    done = fedmpi(*command, "runs", code=75)
    said = "stopped by a signal before the rounds; run the same command with --resume to continue\n"
    assert done.stderr.endswith(said)
    assert len(steps) == 2
    (folder,) = (tmp_path / "runs").iterdir()
    assert (load_run(folder).status, load_run(folder).rounds_completed) == ("interrupted", 0)
    monkeypatch.setattr(NeighGenTraining, "_step", step)
    fedmpi(*command, "runs", code=0)
    assert differences(tmp_path / "whole" / folder.name, folder) == []


def test_clusters_and_sequences_go_on_after_an_interruption(fedmpi, tmp_path, tiny_suite):
    plus = '{ name = "gcfl-plus", length = 3, eps1 = 10.0, eps2 = 0.0, warmup = 2, smallest = 1 }'
    cases = f'a = [{{ label = "plus", algorithm = {plus} }}]'
    text = tiny_suite.read_text().replace("rounds = 4", "rounds = 9")
    tiny_suite.write_text(text.replace('algorithm = ["fedavg", "fedprox", "self-train"]', cases))
    with signalled(lambda client, case, round: round == 4 and client.id == 0):
        fedmpi("run", tiny_suite, "--out", "parts", code=75)
    fedmpi("run", tiny_suite, "--out", "parts", "--resume", code=0)
    fedmpi("run", tiny_suite, "--out", "whole", code=0)
    assert differences(tmp_path / "whole" / "plus", tmp_path / "parts" / "plus") == []
    groups = load_run(tmp_path / "whole" / "plus").results["group"]
    assert groups[4].tolist() != groups[8].tolist()
    assert len(set(groups[8].tolist())) == 3


def test_without_kept_moments_a_checkpoint_holds_the_parameters_alone(fedmpi, interrupted, whole):
    reset = ("--set", "optimizer.state=reset")
    folder = interrupted(*reset)
    # Floats: the models have about 29,600 parameters.
    assert max(len(state) for state in newest(folder).states.values()) < 30_000
    fedmpi("run", "--resume", folder, code=0)
    assert differences(folder, whole(*reset)) == []
