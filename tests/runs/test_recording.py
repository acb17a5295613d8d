"""A round is recorded while devices train the next one."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedmpi.client.groups import ClientGroup
from fedmpi.errors import Diverged
from fedmpi.programs.hooks import Hooks
from fedmpi.runs.reporting import Reporter
from fedmpi.runs.rounds import Rounds
from fedmpi.runs.run_folder import RunFolder
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.started import runs_of, sets

SETTINGS = ("algorithm=fedavg", "kernels=grouped", "group_size=2", "rounds=4")


@pytest.fixture
def events(monkeypatch):
    """What a run does, in order: training is begun and awaited, a round is written."""
    seen, train, write = [], ClientGroup.train, RunFolder.write

    def begun(self, *arguments):
        seen.append("begin")
        awaited = train(self, *arguments)
        return lambda: (seen.append("await"), awaited())[1]

    def written(self, report):
        seen.append(f"write {report.round}")
        write(self, report)

    monkeypatch.setattr(ClientGroup, "train", begun)
    monkeypatch.setattr(RunFolder, "write", written)
    return seen


@pytest.fixture
def asynchronous(monkeypatch):
    """Groups that the host need not await one by one, as on a GPU."""
    made = ClientGroup.__init__

    def make(self, *arguments):
        made(self, *arguments)
        self.asynchronous = True

    return partial(monkeypatch.setattr, ClientGroup, "__init__", make)


def after_training(events):
    """Return the rounds that are written after a training, and before the next has begun."""
    pairs = zip(events, [*events[1:], ""], strict=True)
    return [int(second[6:]) for first, second in pairs if first == "await" and second.startswith("write")]


def test_it_is_written_when_all_groups_have_begun_and_none_is_awaited(
    fedmpi, tiny_suite, tmp_path, events, asynchronous
):
    (usual,) = runs_of(fedmpi, tmp_path, tiny_suite, *SETTINGS).values()
    groups = events.index("write 0") // 2
    begun, awaited = ["begin"] * groups, ["await"] * groups
    assert groups > 1
    assert events == [each for n in range(4) for each in (*["begin", "await"] * groups, f"write {n}")]
    events.clear()
    asynchronous()
    (run,) = runs_of(fedmpi, tmp_path, tiny_suite, *SETTINGS).values()
    waited = [each for n in range(3) for each in (*begun, f"write {n}", *awaited)]
    assert events == [*begun, *awaited, *waited, "write 3"]
    assert run.status == "complete" and differences(usual.folder, run.folder) == []


@pytest.mark.parametrize(
    ("settings", "at_once"),
    [
        ("checkpoint_seconds=0", [0, 1, 2, 3]),
        ("checkpoints=removed", [3]),
        ("checkpoints=removed evaluation.patience=1 rounds=60", ...),
        ("schedule.clock=real devices=equal", [0, 1, 2, 3]),
    ],
)
def test_what_is_saved_and_the_last_round_and_any_by_the_real_clock_are_written_at_once(
    fedmpi, tiny_suite, tmp_path, events, asynchronous, settings, at_once
):
    asynchronous()
    (run,) = runs_of(fedmpi, tmp_path, tiny_suite, *SETTINGS, *settings.split()).values()
    last = run.rounds_completed - 1
    assert run.status == "complete" and last < 59
    assert after_training(events) == ([last] if at_once is ... else at_once)
    assert [each for each in events if each.startswith("write")] == [f"write {n}" for n in range(last + 1)]


def test_what_an_algorithm_changes_later_is_recorded_as_it_was(
    fedmpi, tiny_suite, tmp_path, asynchronous, monkeypatch
):
    kept, report, begin = {}, Reporter.report, Hooks.begin_round

    def reported(self, *arguments):
        result = report(self, *arguments)
        kept["group"] = result.results["group"]
        return result

    def begun(self, round):
        if kept:
            kept["group"] += 1
        return begin(self, round)

    monkeypatch.setattr(Reporter, "report", reported)
    monkeypatch.setattr(Hooks, "begin_round", begun)
    asynchronous()
    (run,) = runs_of(fedmpi, tmp_path, tiny_suite, *SETTINGS).values()
    assert not np.any(run.results["group"])


@pytest.mark.parametrize("when", ["before training", "after training"])
def test_a_run_that_diverges_has_all_rounds_before(
    fedmpi, tiny_suite, tmp_path, asynchronous, monkeypatch, when
):
    begin, trainings = Rounds._begin_round, ClientGroup._trainings

    def begun(self, round):
        if round == 2 and when == "before training":
            raise Diverged("round 3: as the test says")
        return begin(self, round)

    def trained(self, case, algorithm, round, *others):
        result = trainings(self, case, algorithm, round, *others)
        return {n: replace(each, finite=round < 2) for n, each in result.items()}

    monkeypatch.setattr(Rounds, "_begin_round", begun)
    monkeypatch.setattr(ClientGroup, "_trainings", trained)
    asynchronous()
    fedmpi("run", tiny_suite, "--out", tmp_path / "late", *sets(*SETTINGS), code=3)
    run = load_run(next((tmp_path / "late").iterdir()))
    assert (run.status, run.rounds_completed) == ("diverged", 2)
    assert run.reason.startswith("round 3: ")
    kinds = [json.loads(line)["event"] for line in (run.folder / "events.jsonl").read_text().splitlines()]
    assert kinds[-3:] == ["round", "round", "status"]


def test_a_run_that_is_interrupted_has_the_round_before_and_goes_on(
    fedmpi, tiny_suite, tmp_path, asynchronous, monkeypatch
):
    (usual,) = runs_of(fedmpi, tmp_path, tiny_suite, *SETTINGS).values()
    asynchronous()
    arguments = "run", tiny_suite, "--out", tmp_path / "interrupted", *sets(*SETTINGS)
    begin = Rounds._begin_round

    def begun(self, round):
        if round == 1:
            raise KeyboardInterrupt
        return begin(self, round)

    with monkeypatch.context() as patched:
        patched.setattr(Rounds, "_begin_round", begun)
        fedmpi(*arguments)
    run = load_run(next((tmp_path / "interrupted").iterdir()))
    assert run.status != "complete" and run.rounds_completed == 1
    fedmpi(*arguments, "--resume", code=0)
    assert differences(usual.folder, run.folder) == []
