import json

import pytest

from tests.mpi.launcher import find

OPERATIONS = [
    *("Ibarrier", "Bcast", "Gatherv", "Scatterv", "Reduce"),
    *("mean, exact", "mean, float32", "mean, fixed32"),
]
BYTES = [0, 400, 400, 400, 800, 800, 400, 400]


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_all_exchanges_on_two_ranks(name, tmp_path):
    options = ["--size", 100, "--repetitions", 2, "--warmup", 1, "--json"]
    code, output = find(name).run(2, "-m", "fedmpi", "bench", "comm", *options, cwd=tmp_path, timeout=60)
    assert code == 0, output
    report = json.loads(output[output.index("{") : output.rindex("}") + 1])
    found = report["measurements"]
    assert [each["operation"] for each in found] == OPERATIONS
    assert [each["payload_bytes"] for each in found] == BYTES
    assert {each["ranks"] for each in found} == {2}
    for each in found:
        figures = each["figures"]
        assert {len(figure["samples"]) for figure in figures.values()} == {2}
        assert ("pickled_ratio" in figures) == (each["operation"] != "Ibarrier")
        assert ("payload_rate" in figures) == (each["operation"] != "Ibarrier")
    steps = ["encode_seconds", "reduce_seconds", "decode_seconds"]
    exact = found[5]["figures"]
    for place in range(2):
        total = sum(exact[step]["samples"][place] for step in steps)
        assert exact["collective_seconds"]["samples"][place] == pytest.approx(total)
    assert report["provenance"]["mpi"]["size"] == 2
