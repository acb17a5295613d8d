"""Tables on narrow terminals, and names that look like markup."""

import io

from rich.console import Console

from fedmpi.cli.terminal import plain_table


def shown(table, width):
    screen = Console(width=width, file=io.StringIO())
    screen.print(table)
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


def a_table():
    table = plain_table("Runs [of] mine", ("run", "ranks", "seconds"), 1, ("ranks", "none"))
    table.add_line("a run [red]", "4", "1,234.5")
    return table


def test_spare_columns_are_left_out_where_there_is_no_room_and_counted():
    assert shown(a_table(), 80)[0] == "Runs [of] mine"
    assert shown(a_table(), 80)[4].split() == ["a", "run", "[red]", "4", "1,234.5"]
    narrow = shown(a_table(), 26)
    assert narrow[4].split() == ["a", "run", "[red]", "1,234.5"]
    assert " ".join(narrow[6:]) == "1 column does not fit; a wider terminal shows more"


def test_a_caption_of_its_own_stays_and_a_table_can_be_shown_twice():
    table = a_table()
    table.caption = "Of today."
    assert shown(table, 26) == shown(table, 26)
    assert shown(table, 26)[6] == "Of today."
    assert shown(table, 80)[-1] == "Of today."
