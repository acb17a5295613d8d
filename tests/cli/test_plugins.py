"""Runs of algorithms that a file of the user's defines."""

import pytest

from fedmpi.store.reader import load_run
from tests.cli.refusals import refused

DAMPED = """
from fedmpi.algorithms.base import Algorithm
class Damped(Algorithm):
    name = "damped"
    def {hook}
"""
OPTIONS = ("--set", "algorithm=damped", "--set", "rounds=2", "--out", "runs")


@pytest.fixture
def damped(plugged, tiny_suite):
    """Return a function that writes the plug-in with one hook and runs a command on a suite of one case."""
    given = (tiny_suite, *OPTIONS)
    return lambda command, hook, *more: plugged(DAMPED.format(hook=hook), command, *given, *more)


HALF = "update(self, model, mean, k): return super().update(model, mean / 2, k)"
FULL = "update(self, model, mean, k): return super().update(model, mean / 1, k)"


def test_a_run_of_another_version_of_a_plugin_is_refused_and_listed(damped):
    assert damped("run", HALF).returncode == 0
    assert damped("run", HALF).stdout.count("complete, skipped") == 1
    for command, options in (("run", ()), ("run", ("--resume",)), ("sweep", ())):
        words = "damped-rounds=2 was made with another version of own.py (sha256 "
        refused(damped(command, FULL, *options), words)
    assert "(made with another version of own.py (sha256 " in damped("run", FULL, "--list").stdout


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        ("weights(self, samples): return samples / -3", "hook weights in {} returned -"),
        ("groups(self, num_clients): return [-1, 0, 0]", "hook groups in {} returned group -1"),
        ("participants(self, *_): return [0, 0]", "hook participants in {} returned client 0 twice"),
        ("shares(self, name, share): return False", "hook shares leaves no tensor of the model to share"),
    ],
)
def test_a_hook_that_returns_what_it_must_not_starts_no_run(damped, tmp_path, hook, words):
    refused(damped("run", hook), words.format(tmp_path / "own.py"))
    assert not (tmp_path / "runs" / "damped-rounds=2" / "run.h5").exists()


def test_nothing_to_compress_is_refused(damped):
    settings = ("model.norm=batch", "compression=top-k")
    done = damped("run", STATISTICS, *(word for each in settings for word in ("--set", each)))
    refused(done, "hook shares leaves no parameter to compress")


STATISTICS = "shares(self, name, share): return 'running' in name"
NOBODY = "participants(self, seed, round, *_): return [0, 1] if round == 0 else []"
NO_WEIGHT = """weights(self, samples): return [0, 1, 1]
    def participants(self, seed, round, *_): return [0, 1] if round == 0 else [0]
"""


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (NOBODY, "returned nobody: at least one client must train"),
        (NO_WEIGHT, "returned 0 for every participant of group 0: it has no mean"),
    ],
)
def test_a_hook_that_fails_in_a_round_fails_the_run(damped, tmp_path, hook, words):
    done = damped("run", hook)
    assert done.returncode == 1
    assert done.stderr.endswith(f"{words}\n")
    run = load_run(tmp_path / "runs" / "damped-rounds=2")
    assert (run.status, run.rounds_completed) == ("failed", 1)
    assert run.reason == done.stderr.removeprefix("fedmpi: ").strip()


def test_a_weight_may_be_larger_than_a_clients_graphs(damped, fedmpi, tmp_path):
    assert damped("run", "weights(self, samples): return 1_000_000 * samples").returncode == 0
    plain = ("run", "tiny.toml", "--case", "0", "--set", "rounds=2", "--out", "runs")
    fedmpi(*plain, code=0)
    heavy, plain = (load_run(tmp_path / "runs" / f"{name}-rounds=2") for name in ("damped", "fedavg"))
    assert abs(heavy.results["test_loss"] - plain.results["test_loss"]).max() < 1e-5


def test_a_sweep_does_not_believe_a_case_that_left_without_a_word(damped, tmp_path):
    done = damped("sweep", "update(self, *_): __import__('ctypes').CDLL(None)._exit(0)")
    assert done.returncode == 1
    assert "damped-rounds=2: failed, a rank left without a word, after" in " ".join(done.stdout.split())
    assert load_run(tmp_path / "runs" / "damped-rounds=2").status == "stale"


@pytest.mark.parametrize("hook", ["validate(self, model): return 1 / 0", "__init__(self, options): 1 / 0"])
def test_a_plugin_that_fails_while_its_case_is_checked_is_named_with_its_file(damped, hook):
    words = "--set algorithm: damped: own.py raised ZeroDivisionError: division by zero"
    refused(damped("run", hook, "--list"), words)


SUITE = """
name = "own"
[case]
dataset = { name = "synthetic", synthetic = { domains = 2, graphs = 40 } }
rounds = 2
[matrix]
algorithm = ["fedavg", "damped"]
"""


def test_an_own_algorithm_stands_beside_the_others_in_every_command(plugged, fedmpi, tmp_path):
    (tmp_path / "own.toml").write_text(SUITE)
    plugin = ("--plugin", "own.py")
    assert plugged(DAMPED.format(hook=HALF), "run", "own.toml").returncode == 0
    shown = fedmpi("report", "results/runs/own", "--markdown").stdout
    assert shown.count("| FedAvg |") == shown.count("| damped |") > 0
    assert "plugin" not in shown and "setting 2" not in shown
    packed = fedmpi("records", "pack", "own.toml", *plugin)
    assert (packed.returncode, packed.stderr) == (0, "")
    fedmpi("records", "verify", "own.tar.gz", *plugin, code=0)
    chosen = fedmpi("paper", "select", "own.toml", "--write", "best.toml", *plugin, code=0)
    assert "fedmpi sweep best.toml --plugin own.py runs it" in chosen.stdout


def test_a_hook_that_raises_is_named_under_the_traceback(damped, tmp_path):
    done = damped("run", "update(self, model, mean, k): raise ValueError('mine')")
    assert done.returncode == 1
    words = f"algorithm damped: hook update in {tmp_path / 'own.py'} raised ValueError"
    assert f"ValueError: mine\n{words}\n" in done.stderr
