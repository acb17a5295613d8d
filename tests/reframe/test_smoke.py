"""The ReFrame test of the smoke suite, run by ReFrame's local scheduler where it is installed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent.parent / "bench" / "reframe"


@pytest.fixture
def reframe(tmp_path):
    """Return a function that runs the test and gives its report; the program is on the path or in FEDMPI_REFRAME."""
    program = os.environ.get("FEDMPI_REFRAME") or shutil.which("reframe")
    if program is None:
        pytest.skip("no reframe here: pip install reframe-hpc (in an environment of its own: FEDMPI_REFRAME)")

    def run(first_on_path):
        report = tmp_path / "report.json"
        command = [
            program, "-C", BENCH / "local.py", "-c", BENCH / "fedmpi_smoke.py", "-r", "-S", "rounds=2",
            "--exec-policy=serial", f"--prefix={tmp_path}", f"--report-file={report}",
        ]  # fmt: skip
        path = os.pathsep.join([str(first_on_path), str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        return done.returncode, json.loads(report.read_text())["runs"][0]["testcases"]

    return run


def test_it_passes_and_extracts_the_figures_of_merit(reframe, tmp_path):
    code, found = reframe(tmp_path)
    assert (code, [one["result"] for one in found]) == (0, ["pass", "pass"])
    values = [{key.rpartition(":")[2]: value[0] for key, value in one["perfvalues"].items()} for one in found]
    assert set(values[0]) == {"round_seconds", "model_rate", "client_megabytes", "test_accuracy"}
    for name in ("client_megabytes", "test_accuracy"):
        assert values[0][name] == values[1][name]  # the same on one rank and on three
    assert values[0]["client_megabytes"] == pytest.approx(
        2 * 6 * 2 * 4 * 24_960 / 1e6
    )  # rounds, clients, ways


def test_a_case_that_is_not_complete_fails_it(reframe, tmp_path):
    rows = [
        {"algorithm": name, "status": "stale", "rounds": 1} for name in ("fedavg", "fedprox", "self-train")
    ]
    fake = tmp_path / "bin" / "fedmpi"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\necho '{json.dumps(rows)}'\n")
    fake.chmod(0o755)
    code, found = reframe(fake.parent)
    assert code != 0
    assert [one["result"] for one in found] == ["fail", "fail"]
