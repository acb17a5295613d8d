"""What a refusal owes its reader: the right words, in one line. And tables of what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fedmpi.errors import BadInput


def table(text: str) -> list[tuple[str, str]]:
    """Return the rows of a text: ``input -> words``, on one line or with further lines indented."""
    rows = re.findall(r"^(\S.*?)\s+-> (.*?)$(?=\n\S|\s*\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(rows) == text.count("-> ")
    return [(re.sub(r"\n +", " ", given), re.sub(r"\n +", " ", words)) for given, words in rows]


@contextmanager
def refused(words: str = "", error: type[Exception] = BadInput, match: str = "") -> Iterator:
    """Expect an error of one line that holds these words and matches a pattern."""
    with pytest.raises(error) as found:
        yield found
    text = str(found.value)
    assert words in text and re.search(match, text) and "\n" not in text, text
