"""docs/extend.md says what goes together, from the properties that the checks have."""

import re
from pathlib import Path

from fedmpi.registry.checks.exchange import PROPERTIES, RULES

PAGE = Path(__file__).parents[2] / "docs" / "extend.md"


def table():
    """Return the table as the page has it."""
    lines = ["| a class with | cannot have |", "|---|---|"]
    for name, each in PROPERTIES.items():
        without = [rule.title for rule in RULES if name in rule.without]
        lines.append(f"| {each.written} | {'; '.join(without) or '-'} |")
    return "\n".join(lines)


def test_the_page_has_the_table_of_what_goes_together():
    found = re.search(
        r"<!-- together: begin -->\n(.*?)\n?<!-- together: end -->", PAGE.read_text(), re.DOTALL
    )
    assert found is not None and found[1] == table(), "run: python -m tests.registry.test_together"


def test_every_rule_is_about_known_properties():
    assert {name for rule in RULES for name in rule.without} == PROPERTIES.keys()


if __name__ == "__main__":
    text = re.sub(
        r"(<!-- together: begin -->\n).*?(<!-- together: end -->)",
        lambda found: f"{found[1]}{table()}\n{found[2]}",
        PAGE.read_text(),
        flags=re.DOTALL,
    )
    PAGE.write_text(text)
