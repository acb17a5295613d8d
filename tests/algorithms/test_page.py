"""docs/algorithms.md and docs/extend.md name what there is."""

import re
from pathlib import Path

from fedmpi.algorithms.capabilities import CONFLICTS
from fedmpi.registry.algorithms import ALGORITHMS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_a_row_for_every_algorithm():
    rows = re.findall(r"^\| (`.*?`) \|", (DOCS / "algorithms.md").read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)} - {"name"}
    own = {name for name, kind in ALGORITHMS.items() if kind.__module__.startswith("fedmpi.")}
    assert named == own


def test_the_page_names_every_capability_that_conflicts():
    text = (DOCS / "extend.md").read_text()
    part = text[text.index("- **Combinations.**") :].split("\n- ")[0]
    for first, second, _ in CONFLICTS:
        assert f"`{first.__name__}`" in part and f"`{second.__name__}`" in part
