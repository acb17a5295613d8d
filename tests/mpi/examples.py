"""The example files of docs/extend.md, taken from the page."""

import re

from tests.mpi.launcher import ROOT

_EXAMPLE = re.compile(
    r"`(\w+\.py)`:\n\n```python\n(.*?)```\n\n```bash\nmpiexec -n 2 fedmpi (.*?)\n```", re.DOTALL
)
PAGE = (ROOT / "docs" / "extend.md").read_text()
EXAMPLES = {file: (text, command.split()) for file, text, command in _EXAMPLE.findall(PAGE)}
"""Text and command of each file."""
