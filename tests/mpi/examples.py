"""The example files of docs/extend.md and docs/extend-data.md, taken from the pages."""

import re

from tests.mpi.launcher import ROOT

_EXAMPLE = re.compile(
    r"`(\w+)\.py`:\n\n```python\n(.*?)```\n(?:\n```bash\nmpiexec -n 2 fedmpi (.*?)\n```)?", re.DOTALL
)


def examples(page):
    """Return text and command of each file of a page; a file without a command has that of the first."""
    found = _EXAMPLE.findall((ROOT / "docs" / page).read_text())
    first, _, command = found[0]
    return {f"{name}.py": (text, (own or command.replace(first, name)).split()) for name, text, own in found}


EXAMPLES = {**examples("extend.md"), **examples("extend-data.md")}
"""Text and command of each file."""
