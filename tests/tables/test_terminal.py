"""Tables on narrow terminals: what stays, what is named below, and names that act like markup."""

import io
from operator import itemgetter

from rich.console import Console

from fedmpi.tables.table import Column, Entry, Table, listed
from fedmpi.tables.terminal import OnTerminal, shortened


def shown(table, width):
    screen = Console(width=width, file=io.StringIO())
    screen.print(OnTerminal(table))
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


def a_table(*notes):
    columns = listed(("run", "ranks", "best by validation", "seconds"), spare=("ranks", "seconds"))
    row = ("a run [red]", 4, Entry("90.28", 90.28), Entry("1,234.5", 1234.5))
    return Table(columns, [row], "Runs [of] mine", notes)


def test_headings_are_broken_between_words_only():
    assert shown(a_table(), 80) == [
        "Runs [of] mine",
        "                       best by",
        "run          ranks  validation  seconds",
        "───────────────────────────────────────",
        "a run [red]      4       90.28  1,234.5",
        "",
    ]


def test_a_column_of_names_is_never_narrower_than_a_word_of_its_heading():
    table = Table(listed(["algorithm.protocol", "score"]), [("a-name-of-twenty-two-l", 1.0)])
    assert shown(table, 25)[1:4] == [
        "algorithm.protocol  score",
        "─────────────────────────",
        "a-name-of…nty-two-l   1.0".replace("…nty-two-l ", "…ty-two-l  "),
    ]


def test_spare_columns_are_left_out_where_there_is_no_room_and_named_below():
    assert shown(a_table(), 34)[2:] == [
        "run          validation  seconds",
        "────────────────────────────────",
        "a run [red]       90.28  1,234.5",
        "Left out: ranks; a wider terminal",
        "or `| less -S` shows them.",
        "",
    ]
    assert shown(a_table(), 26)[4:6] == ["a run [red]       90.28", "Left out: ranks, seconds;"]


def test_long_names_lose_their_middle_only_when_nothing_else_helps():
    columns = listed(("case", "dataset", "accuracy", "seconds"), spare=("seconds",))
    table = Table(columns, [("gcfl-seed=10-dropout=0.5", "PROTEINS", Entry("70.00", 70.0), 12.5)])
    assert shown(table, 60)[3] == "gcfl-seed=10-dropout=0.5  PROTEINS     70.00     12.5"
    assert shown(table, 44)[3] == "gcfl-seed=10-dropout=0.5  PROTEINS     70.00"
    assert shown(table, 36)[3] == "gcfl-see…out=0.5  PROTEINS     70.00"


def test_text_that_may_take_lines_takes_them():
    columns = listed(("suite", "cases", "description"), wrapped=("description",))
    row = ("fclg/causes", 54, "FCLG with vectors of unit length and one setting changed")
    table = Table(columns, [row])
    assert shown(table, 44)[3:] == [
        "fclg/causes     54  FCLG with vectors of",
        "                    unit length and one",
        "                    setting changed",
        "",
    ]


def test_a_note_stays_and_a_table_can_be_shown_twice():
    table = a_table("Of today.")
    assert shown(table, 26) == shown(table, 26)
    assert shown(table, 26)[5] == shown(table, 80)[5] == "Of today."


def test_names_of_others_neither_act_nor_break_lines():
    rows = [("a\x1b]0;title\x07b\nc\u202e",), ("plain",)]
    table = Table(listed(["run"]), rows, "title\x1b[31m")
    assert shown(table, 80) == [
        r"title\x1b[31m",
        "run",
        "───────────────────────────",
        r"a\x1b]0;title\x07b\nc\u202e",
        "plain",
        "",
    ]


def test_wide_letters_are_counted_as_two_columns():
    assert shortened("日本語日本語", 12) == "日本語日本語"
    assert shortened("日本語日本語", 9) == "日本…本語"


def test_the_meanings_of_the_columns_that_are_shown_stand_below():
    columns = [
        Column("run", itemgetter(0)),
        Column("last", itemgetter(1), "the last round", spare=1),
        Column("best", itemgetter(1), "the best round", spare=2),
    ]
    table = Table(columns, [("a", 1)])
    assert shown(table, 80)[-2] == "last: the last round; best: the best round."
    assert shown(table, 12)[4:6] == ["last: the", "last round."]


def test_a_line_parts_rows():
    table = Table(listed(["client", "count"]), [("a", 1), ("all", 1)], ruled=[1])
    assert shown(table, 80)[3:6] == ["a           1", "─────────────", "all         1"]
