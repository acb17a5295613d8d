"""A round is recorded while devices train the next one."""

import itertools
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import pytest

from fedmpi.client.groups import ClientGroup
from fedmpi.runs.run_folder import RunFolder
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.started import runs_of, sets

SETTINGS = ("algorithm=fedavg", "kernels=grouped", "group_size=2", "rounds=4")


@pytest.fixture
def events(monkeypatch):
    """Names of what a run does, in order: training begun and awaited, a round written."""
    found, train, write = [], ClientGroup.train, RunFolder.write

    def begun(self, *arguments):
        found.append("begin")
        awaited = train(self, *arguments)
        return lambda: (found.append("await"), awaited())[1]

    def written(self, report):
        found.append(f"write {report.round}")
        write(self, report)

    monkeypatch.setattr(ClientGroup, "train", begun)
    monkeypatch.setattr(RunFolder, "write", written)
    return found


@pytest.fixture
def asynchronous(monkeypatch):
    """Groups that the host need not await one by one, as on a GPU."""
    made = ClientGroup.__init__

    def make(self, *arguments):
        made(self, *arguments)
        self.asynchronous = True

    return partial(monkeypatch.setattr, ClientGroup, "__init__", make)


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
    ("settings", "at_once"), [("checkpoint_seconds=0", 4), ("evaluation.patience=1 rounds=60", 1)]
)
def test_what_is_saved_and_what_ends_a_run_is_written_at_once(
    fedmpi, tiny_suite, tmp_path, events, asynchronous, settings, at_once
):
    (usual,) = runs_of(fedmpi, tmp_path, tiny_suite, *SETTINGS, *settings.split()).values()
    events.clear()
    asynchronous()
    (run,) = runs_of(fedmpi, tmp_path, tiny_suite, *SETTINGS, *settings.split()).values()
    followed = [now for before, now in itertools.pairwise(events) if before == "await" != now]
    last = run.rounds_completed
    assert [each for each in followed if each != "begin"] == [
        f"write {n}" for n in range(last - at_once, last)
    ]
    assert run.status == "complete" and differences(usual.folder, run.folder) == []


def test_a_run_that_diverges_has_all_rounds_before(
    fedmpi, tiny_suite, tmp_path, events, asynchronous, monkeypatch
):
    original = ClientGroup._trainings

    def trainings(self, case, algorithm, round, *others):
        found = original(self, case, algorithm, round, *others)
        return {n: replace(each, finite=round < 2) for n, each in found.items()}

    monkeypatch.setattr(ClientGroup, "_trainings", trainings)
    asynchronous()
    fedmpi("run", tiny_suite, "--out", tmp_path / "late", *sets(*SETTINGS), code=3)
    run = load_run(next((tmp_path / "late").iterdir()))
    assert (run.status, run.rounds_completed) == ("diverged", 2)
    assert run.reason.startswith("round 3: ")


def test_a_run_that_is_killed_has_the_round_before_and_goes_on(fedmpi, tiny_suite, tmp_path, asynchronous):
    (usual,) = runs_of(fedmpi, tmp_path, tiny_suite, *SETTINGS).values()
    asynchronous()
    arguments = "run", tiny_suite, "--out", tmp_path / "killed", *sets(*SETTINGS)
    with patch("fedmpi.runs.rounds.training.train", side_effect=_second_time(KeyboardInterrupt)):
        fedmpi(*arguments)
    killed = load_run(next((tmp_path / "killed").iterdir()))
    assert killed.status != "complete" and killed.rounds_completed == 1
    fedmpi(*arguments, "--resume", code=0)
    assert differences(usual.folder, killed.folder) == []


def _second_time(error):
    """Return a side effect that raises in the second call, and trains in others."""
    from fedmpi.client.training import train

    def called(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise error
        return train(*arguments)

    calls = []
    return called
