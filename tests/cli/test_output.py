"""Standard output that nobody takes: a run goes on, other commands end in a line or in silence."""

import errno
import io
import os
import subprocess
import sys

import pytest

from fedmpi.cli import ending, terminal
from fedmpi.store.reader import load_run
from fedmpi.visible import complain


class Refusing(io.StringIO):
    """A stream that takes nothing."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def write(self, text):
        raise OSError(self.number, "no more")


@pytest.mark.parametrize(("number", "reader_gone"), [(errno.EPIPE, True), (errno.ENOSPC, False)])
def test_a_lost_output_ends_a_command(monkeypatch, number, reader_gone):
    monkeypatch.setattr(sys, "stdout", Refusing(number))
    with ending.guarded(), pytest.raises(ending.OutputLost, match="no more") as lost:
        terminal.say("a line")
    assert lost.value.reader_gone is reader_gone


def test_a_lost_output_is_said_once_where_the_work_goes_on(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", Refusing(errno.EPIPE))
    with ending.guarded():
        ending.outlive()
        for _ in range(3):
            terminal.console(sys.stdout).print("a line")
    said = "fedmpi: standard output is lost (no more); the work goes on without it\n"
    assert capsys.readouterr().err == said


def test_a_lost_standard_error_is_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Refusing(errno.ENOSPC))
    with ending.guarded():
        complain("unheard")


def test_letters_that_the_encoding_lacks_are_escaped(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    with ending.guarded():
        terminal.say("± 1")
    assert written.getvalue() == b"\\xb1 1\n"


def test_what_a_launcher_could_not_pass_on_is_not_handed_to_it():
    reader, writer = os.pipe()
    ending._check(f"/proc/self/fd/{writer}")
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        ending._check(f"/proc/self/fd/{writer}")
    os.close(writer)


def shell(command, folder):
    """Run a line of the shell in which fedmpi is "$@"."""
    words = ["bash", "-c", f"set -o pipefail; {command}", "-", sys.executable, "-m", "fedmpi"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


def test_a_run_outlives_its_output(tiny_suite, tmp_path):
    done = shell(f'"$@" run {tiny_suite} --case fedavg --out runs > /dev/full', tmp_path)
    line = "fedmpi: standard output is lost (No space left on device); the work goes on without it\n"
    assert (done.returncode, done.stderr) == (0, line)
    assert load_run(tmp_path / "runs" / "fedavg").status == "complete"


FULL = "fedmpi: cannot write: No space left on device\n"


@pytest.mark.parametrize(
    ("command", "ended"),
    [
        ('"$@" suites | true', (141, "")),
        ('"$@" suites >&-', (1, "fedmpi: cannot write: Bad file descriptor\n")),
        ('"$@" jobs systems >/dev/full', (1, FULL)),
        ('"$@" jobs plan gcfl/proteins --system generic-cpu --json >/dev/full', (1, FULL)),
    ],
)
def test_an_output_that_takes_nothing_ends_a_table_in_silence_or_a_line(tmp_path, command, ended):
    done = shell(command, tmp_path)
    assert (done.returncode, done.stderr) == ended
