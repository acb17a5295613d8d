"""Text from outside is read within bounds, and what is beyond them is one line."""

import os

import pytest

from fedmpi.config.documents import load_toml, parse_json, parse_toml
from fedmpi.errors import BadInput


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"a = {'9' * 5000}", "a number of more than 64 bits"),
        (f"a = {2**63}", "a: an integer of more than 64 bits"),
        (f"a = {'[' * 5000}{']' * 5000}", "brackets deeper than 32 levels"),
        (f"{'.'.join(['a'] * 2000)} = 1", "deeper than 32 levels"),
        (f"{'k' * 256} = 1", "a key of more than 255 characters"),
        ('[t]\na = ["x\\u0000y"]', r"t.a: text with the character '\x00'"),
        ('a = "\\u001b[2J"', r"a: text with the character '\x1b'"),
    ],
)
def test_toml_beyond_the_bounds(text, words):
    with pytest.raises(ValueError) as error:
        parse_toml(text)
    assert words in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "brackets deeper than 32 levels"),
        ("9" * 5000, "a number of more than 64 bits"),
        ("[1]", "not JSON: no table"),
        ('{"a": "\\ud800"}', "a: text with the character"),
        ("{", "not JSON: "),
    ],
)
def test_json_beyond_the_bounds(text, words):
    with pytest.raises(ValueError, match=words):
        parse_json(text)


def test_what_suites_hold_is_within_the_bounds():
    text = f'a.b.c = {2**63 - 1}\nd = "two\\n\\tlines, ü"\ne = [[[1.5]]]\nf = {-(2**63)}'
    assert parse_toml(text)["a"]["b"]["c"] == 9223372036854775807


def test_a_pipe_is_not_waited_for_and_a_huge_file_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(BadInput, match=r"pipe\.toml: cannot read this suite \(not a file\)"):
        load_toml(tmp_path / "pipe.toml", "suite")
    with (tmp_path / "huge.toml").open("wb") as stream:
        stream.truncate(2**40)
    with pytest.raises(BadInput, match=r"more than 16,777,216 bytes"):
        load_toml(tmp_path / "huge.toml", "suite")
