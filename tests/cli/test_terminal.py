"""Names of others that act on a terminal, through every command that shows them; and how wide a pipe is."""

import io
import re

import pytest

from fedmpi.cli import terminal
from fedmpi.store.events import NAME as EVENTS
from fedmpi.store.record import RunRecord
from tests.analysis.tasks import FIELDS

NASTY = "a\x1b[31mb\nfedmpi: c\u202ed[red]"
CONTROLS = re.compile(r"[^\n -~\u00a1-\u2025\u2030-\uffff]")


@pytest.fixture
def nasty_run(tmp_path):
    """The folder of a run that has the name everywhere where a record may hold one."""
    config = dict.fromkeys(("suite", "name", "algorithm"), NASTY) | {"dataset": {"name": NASTY}}
    config |= {"objective": "supervised", "seed": 1, "rounds": 2}
    folder = tmp_path / "runs" / NASTY
    about = {"config": config, "clients": [NASTY, "b"], "rounds": 2, "partition": {}}
    with RunRecord.create(folder, **about, extra=FIELDS["accuracy"]) as record:
        record.begin_attempt(0, 1, ["Bcast"], {})
        record.finish("failed", NASTY)
    assert (folder / EVENTS).exists()
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "report RUN", "report RUN --markdown --latex", "watch RUN --once", "compare RUN RUN", "scaling RUN",
        "export RUN --tensorboard tb", "records pack RUN", "records repair RUN", "run RUN",
    ],
)  # fmt: skip
def test_what_a_record_says_is_shown_and_does_nothing(fedmpi, nasty_run, command):
    done = fedmpi(*(str(nasty_run) if part == "RUN" else part for part in command.split()))
    shown = done.stdout + done.stderr
    assert CONTROLS.findall(shown) == []
    assert "Traceback" not in shown
    assert not [line for line in shown.splitlines() if line.startswith("fedmpi: c")]
    assert r"a\x1b[31mb\nfedmpi: c\u202ed[red]" in shown


def test_an_unknown_name_is_shown_as_it_stands(fedmpi):
    done = fedmpi("run", NASTY, code=2)
    assert CONTROLS.findall(done.stderr) == []
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("columns", "width"), [("100", 100), ("", 10_000), ("0", 10_000), ("wide", 10_000)])
def test_a_pipe_is_as_wide_as_columns_says_or_without_end(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal.console(io.StringIO()).width == width


def test_strings_are_lines_and_no_markup(capsys):
    screen = terminal.console(io.StringIO())
    screen.print("[bold]two\nlines\x1b[0m")
    assert screen.file.getvalue() == "[bold]two\\nlines\\x1b[0m\n"
