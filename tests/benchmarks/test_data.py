from dataclasses import replace

import pytest

from fedmpi.benchmarks.data import measure
from fedmpi.errors import BadInput


def test_archives_come_from_a_mirror(source, tmp_path):
    with pytest.raises(BadInput, match="give --mirror"):
        measure(["MUTAG"], source, repetitions=1)
    with pytest.raises(BadInput, match="no such archive"):
        measure(["MUTAG"], replace(source, mirror=tmp_path), repetitions=1)
    with pytest.raises(BadInput, match="has no files"):
        measure(["synthetic"], source, repetitions=1)
