"""What of other people's text may reach a terminal."""

import pytest

from fedmpi.visible import complain_of, visible, visible_lines


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("FedAvg on MÜTAG, ±1 °C, 漢字", "FedAvg on MÜTAG, ±1 °C, 漢字"),
        ("a\x1b[31mred\x1b[0m", r"a\x1b[31mred\x1b[0m"),
        ("two\nlines\rand\ttabs", r"two\nlines\rand\ttabs"),
        ("\x9b31m \x00 \x7f", r"\x9b31m \x00 \x7f"),
        ("\u202egnp.exe\u2066", r"\u202egnp.exe\u2066"),
        ("line\u2028paragraph\u2029", r"line\u2028paragraph\u2029"),
        ("not UTF-8: \udcff", r"not UTF-8: \udcff"),
        ("[red]it's[/red]", "[red]it's[/red]"),
    ],
)
def test_what_acts_on_a_terminal_is_written_out(given, shown):
    assert visible(given) == shown


def test_lines_of_a_traceback_stay_lines():
    assert visible_lines("first\nsecond\x07\n") == "first\nsecond\\x07\n"


def test_of_many_lines_of_trouble_the_first_are_shown(capsys):
    complain_of(f"run {number}" for number in range(23))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["fedmpi: run 0", "fedmpi: run 1"]
    assert len(lines) == 21 and lines[-1] == "fedmpi: and 3 more of such lines"
