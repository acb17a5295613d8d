from functools import partial

import pytest

from tests.plugins import forgotten


@pytest.fixture
def plugin(tmp_path):
    """Return a function that loads a plug-in file of this text, and returns its digest."""
    with forgotten(tmp_path) as plugins:
        yield partial(plugins, "odd")
