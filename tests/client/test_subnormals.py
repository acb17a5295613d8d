import numpy as np
import pytest

from fedmpi.config.suite import read
from fedmpi.registry.check import check_suite
from tests.saved import newest

SUITE = """
name = "decay"
[case]
algorithm = "self-train"
rounds = 40
share = "all"
dataset = { synthetic = { domains = 1, graphs = 60 } }
partition = { name = "iid", clients = 2 }
# A step keeps a twentieth of each weight: after 40 they are below what float32 holds in full.
optimizer = { name = "sgd", lr = 0.5, weight_decay = 1.9 }
[matrix]
kernels = ["compiled", "csr"]
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "decay.toml"
    path.write_text(SUITE)
    return path


def below_normal(folder):
    size = np.abs(np.concatenate(list(newest(folder).states.values())))
    return int(((size > 0) & (size < np.finfo(np.float32).tiny)).sum())


def test_subnormal_numbers_become_zero_on_request_only(fedmpi, suite, tmp_path):
    counts = []
    for number, choice in enumerate(["kept", "flushed", "kept"]):  # the setting lasts for its own run
        done = fedmpi("run", suite, "--set", f"subnormals={choice}", "--out", str(number))
        assert done.returncode == 0, done.stderr
        names = [f"{kernels}-subnormals={choice}" for kernels in ("compiled", "csr")]
        counts.append([below_normal(tmp_path / str(number) / name) for name in names])
    assert counts[1] == [0, 0]
    assert counts[0] == counts[2] and min(counts[0]) > 0


def test_a_case_that_keeps_them_has_the_configuration_of_earlier_runs(suite):
    kept, flushed = (check_suite(read(suite, more))[0].case for more in ([], ["subnormals=flushed"]))
    assert "subnormals" not in kept.config()
    assert flushed.config()["subnormals"] == "flushed"
