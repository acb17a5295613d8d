"""docs/algorithms.md names what there is."""

import re
from pathlib import Path

from fedmpi.registry.algorithms import ALGORITHMS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_a_row_for_every_algorithm():
    rows = re.findall(r"^\| (`.*?`) \|", (DOCS / "algorithms.md").read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)} - {"name"}
    own = {name for name, kind in ALGORITHMS.items() if kind.__module__.startswith("fedmpi.")}
    assert named == own
