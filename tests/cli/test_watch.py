"""`fedmpi watch` beside a real run in a process of its own."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from rich.console import Console

from fedmpi.cli.watch import Watch, _view, sparkline
from fedmpi.store.record import RunRecord

LONG = ["--case", "fedavg", "--set", "rounds=4000", "--set", "dataset.synthetic.graphs=20"]


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.fixture
def watching(tmp_path):
    """Return a function that starts `fedmpi watch`; what it prints goes to a file."""
    started = []

    def start(*arguments):
        output = (tmp_path / "watch.txt").open("w")
        command = [sys.executable, "-m", "fedmpi", "watch", *map(str, arguments)]
        started.append(subprocess.Popen(command, cwd=tmp_path, stdout=output, stderr=subprocess.STDOUT))
        return started[-1], lambda: (tmp_path / "watch.txt").read_text()

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_run_is_watched_through_its_interruption_to_its_end(fedmpi_process, watching, tiny_suite, tmp_path):
    run = fedmpi_process("run", tiny_suite, "--out", "runs", *LONG)
    folders = lambda: list(tmp_path.glob("runs/*/events.jsonl"))  # noqa: E731
    wait_for(folders)
    folder = folders()[0].parent
    watch, shown = watching(folder, "--interval", "0.1")
    wait_for(lambda: "round    3/4000" in shown())
    run.send_signal(signal.SIGUSR1)
    assert run.wait(60) == 75
    wait_for(lambda: "interrupted: " in shown())
    assert watch.poll() is None
    stopped = sum(line.startswith("round ") for line in shown().splitlines())
    again = fedmpi_process("run", folder, "--resume")
    wait_for(lambda: sum(line.startswith("round ") for line in shown().splitlines()) > stopped + 3)
    again.send_signal(signal.SIGKILL)
    again.wait(60)
    wait_for(lambda: shown().rstrip().splitlines()[-1].startswith("stale: "))
    assert watch.poll() is None


def test_it_ends_with_the_run(fedmpi, watching, tiny_suite, tmp_path):
    assert fedmpi("run", tiny_suite, "--out", "runs", "--case", "fedprox").returncode == 0
    watch, shown = watching(tmp_path / "runs" / "fedprox")
    assert watch.wait(60) == 0
    lines = shown().splitlines()
    assert lines[0] == "tiny/fedprox: fedprox on synthetic"
    assert [line[:11] for line in lines[1:5]] == [f"round {n}/4  "[:11] for n in (1, 2, 3, 4)]
    assert lines[-1] == "complete"


def test_once_shows_where_it_is(fedmpi, tiny_suite):
    assert fedmpi("run", tiny_suite, "--out", "runs").returncode == 0
    done = fedmpi("watch", "runs", "--once")
    assert done.returncode == 0
    assert "tiny/self-train: self-train on synthetic   (newest of 3 runs)" in done.stdout
    assert "round 4 of 4" in done.stdout and "complete; 3 clients on 1 rank" in done.stdout
    assert "synthetic-2" in done.stdout


@pytest.mark.parametrize(
    ("height", "clients", "last"), [(24, 9, "and 3 more clients"), (40, 12, "synthetic-11")]
)
def test_a_screen_has_as_many_clients_as_fit(fedmpi, tiny_suite, tmp_path, height, clients, last):
    options = ["--case", "fedavg", "--set", "dataset.synthetic.domains=12", "--out", "runs"]
    assert fedmpi("run", tiny_suite, *options).returncode == 0
    watched, screen = Watch(tmp_path / "runs"), Console(width=80, height=height)
    watched.look()
    with screen.capture() as captured:
        screen.print(_view(watched, screen, height))
    lines = captured.get().splitlines()
    assert len(lines) <= height and max(map(len, lines)) <= 80
    assert sum(line.startswith("synthetic-") for line in lines) == clients
    assert lines[-2].startswith(last)
    assert lines[2].endswith("waiting for another run")


def test_a_diverged_run_is_told_by_the_exit_code(fedmpi, tiny_suite, tmp_path):
    options = ["--case", "fedavg", "--set", "optimizer.lr=1e30", "--out", "runs"]
    assert fedmpi("run", tiny_suite, *options).returncode == 3
    done = fedmpi("watch", next(tmp_path.glob("runs/*")))
    assert done.returncode == 3
    assert "diverged: round" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "none: no such file or folder"),
        ([".", "--once"], "no run (run.h5) in it or below"),
        (["made", "--once"], "made/events.jsonl: line 1 is not an event of a fedmpi run"),
        (["record"], "record: it has no event log (events.jsonl) to watch; fedmpi report shows its record"),
        (["made", "--interval", "0"], "--interval 0: give a number of seconds above 0"),
    ],
)
def test_mistakes(fedmpi, tmp_path, arguments, words):
    if "made" in arguments:
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "events.jsonl").write_text("{}\n")
    if "record" in arguments:
        RunRecord.create(tmp_path / "record", config={}, clients=["c"], rounds=3, partition={}).close()
        (tmp_path / "record" / "events.jsonl").unlink()
    done = fedmpi("watch", *arguments)
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_a_sparkline_rises_and_leaves_gaps():
    assert sparkline([0.0, 0.5, 1.0], 10) == "▁▅█" or sparkline([0.0, 0.5, 1.0], 10) == "▁▄█"
    assert sparkline([0.0, np.nan, 1.0], 10) == "▁ █"
    assert sparkline([1.0] * 6, 3) == "▁▁▁"
    assert sparkline([np.nan], 3) == ""
