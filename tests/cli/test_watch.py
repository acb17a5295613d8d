"""`fedmpi watch` beside a real run in a process of its own."""

import signal
import subprocess
import sys

import numpy as np
import pytest

from fedmpi.cli.watch import sparkline
from fedmpi.store.record import RunRecord
from tests.cli.refusals import refused
from tests.cli.waiting import wait_for

LONG = ["--case", "fedavg", "--set", "rounds=4000", "--set", "dataset.synthetic.graphs=20"]


@pytest.fixture
def started():
    """A list of processes that do not outlive the test."""
    processes = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_run_is_watched_through_its_interruption_to_its_end(fedmpi_process, started, tiny_suite, tmp_path):
    run = fedmpi_process("run", tiny_suite, "--out", "runs", *LONG)
    started.append(run)
    folders = lambda: list(tmp_path.glob("runs/*/events.jsonl"))  # noqa: E731
    wait_for(folders)
    folder, printed = folders()[0].parent, tmp_path / "watch.txt"
    shown = lambda: printed.read_text().splitlines()  # noqa: E731
    rounds = lambda: sum(line.startswith("round ") for line in shown())  # noqa: E731
    command = [sys.executable, "-m", "fedmpi", "watch", folder, "--interval", "0.1"]
    with printed.open("w") as output:
        watch = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    started.append(watch)
    wait_for(lambda: any("round    3/4000" in line for line in shown()))
    run.send_signal(signal.SIGUSR1)
    assert run.wait(60) == 75
    wait_for(lambda: any("interrupted: " in line for line in shown()))
    assert watch.poll() is None
    stopped = rounds()
    again = fedmpi_process("run", folder, "--resume")
    started.append(again)
    wait_for(lambda: rounds() > stopped + 3)
    again.send_signal(signal.SIGKILL)
    again.wait(60)
    wait_for(lambda: shown()[-1].startswith("stale: "))
    assert watch.poll() is None


def test_it_ends_with_the_run_and_once_shows_where_it_is(fedmpi, tiny_suite):
    fedmpi("run", tiny_suite, "--out", "runs", code=0)
    whole = fedmpi("watch", "runs/fedprox", code=0)
    lines = whole.stdout.splitlines()
    assert lines[0] == "tiny/fedprox: fedprox on synthetic"
    assert [line[:11] for line in lines[1:5]] == [f"round {n}/4  "[:11] for n in (1, 2, 3, 4)]
    assert lines[-1] == "complete"
    done = fedmpi("watch", "runs", "--once", code=0)
    assert "tiny/self-train: self-train on synthetic   (newest of 3 runs)" in done.stdout
    for words in ("round 4 of 4", "waiting for another run", "complete; 3 clients on 1 rank", "synthetic-2"):
        assert words in done.stdout


def test_a_diverged_run_is_told_by_the_exit_code(fedmpi, tiny_suite, tmp_path):
    options = ["--case", "fedavg", "--set", "optimizer.lr=1e30", "--out", "runs"]
    fedmpi("run", tiny_suite, *options, code=3)
    done = fedmpi("watch", next(tmp_path.glob("runs/*")), code=3)
    assert "diverged: round" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "none: no such file or folder"),
        ([".", "--once"], "no run (run.h5) in it or below"),
        (["made", "--once"], "made/events.jsonl: line 1 is not an event of a fedmpi run"),
        (["record"], "record: it has no event log (events.jsonl) to watch; fedmpi report shows its record"),
        (["made", "--interval", "0"], "'--interval': Input should be greater than or equal to 0.01"),
    ],
)
def test_mistakes(fedmpi, tmp_path, arguments, words):
    if "made" in arguments:
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "events.jsonl").write_text("{}\n")
    if "record" in arguments:
        RunRecord.create(tmp_path / "record", config={}, clients=["c"], rounds=3, partition={}).close()
        (tmp_path / "record" / "events.jsonl").unlink()
    refused(fedmpi("watch", *arguments), words)


def test_a_sparkline_rises_and_leaves_gaps():
    assert sparkline([0.0, 0.5, 1.0], 10) == "▁▅█" or sparkline([0.0, 0.5, 1.0], 10) == "▁▄█"
    assert sparkline([0.0, np.nan, 1.0], 10) == "▁ █"
    assert sparkline([1.0] * 6, 3) == "▁▁▁"
    assert sparkline([np.nan], 3) == ""
