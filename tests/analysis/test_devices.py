"""What reports and pages say of a run by the virtual clock."""

from pathlib import Path

import pytest

from fedmpi.analysis import rows
from fedmpi.analysis.columns import run_columns
from fedmpi.analysis.summary import summarise
from fedmpi.comm.world import World
from fedmpi.runs.run import run
from fedmpi.runs.signals import StopRequest
from fedmpi.store.reader import load_run
from tests.mpi.session import Silent, only


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a root, and in it runs of two schedules."""
    root = tmp_path_factory.mktemp("clocked")
    for case in ("buffered", "deadline"):
        run(only(root, f"case={case}"), World(), Silent(), StopRequest())
    return root


def record(root, case):
    return load_run(next(root.rglob(f"{case}*/run.h5")).parent)


def test_figures_of_devices_by_hand(folders):
    stale, dropping = (record(folders, case) for case in ("buffered", "deadline"))
    results, found = stale.results, summarise(stale, 0.01)
    clock, used = results["virtual_clock"], results["participated"].astype(bool)
    assert found["virtual_seconds"] == pytest.approx(clock[-1])
    assert found["utilisation"] == pytest.approx(
        results["device_seconds"].sum() / (clock[-1] * used.shape[1])
    )
    assert found["mean_staleness"] == results["staleness"][used].mean() > 0
    assert found["stale_share"] == (results["staleness"][used] > 0).mean()
    assert "wasted_gflop" not in found
    assert summarise(dropping)["wasted_gflop"] == dropping.results["wasted_flops"].sum() / 1e9 > 0
    reached = found["to_target"]
    assert reached["virtual_seconds"] == pytest.approx(clock[reached["rounds"] - 1])
    headings = [column.heading for column in run_columns([found], stale.metrics)]
    assert {"in use %", "stale %", "virtual s to target", "MB to target"} <= set(headings)


def test_rows_and_the_report_have_the_clock(fedmpi, folders, tmp_path):
    csv = str(tmp_path / "rows.csv")
    assert "| virtual s |" in fedmpi("report", str(folders), "--markdown", "--csv", csv).stdout
    clocks = {float(row["run_virtual_clock"]) for row in rows.read(Path(csv))}
    assert clocks == {record(folders, case).results["virtual_clock"][-1] for case in ("buffered", "deadline")}


def test_a_page_has_virtual_time(fedmpi, folders, tmp_path):
    page, plain = tmp_path / "page.html", tmp_path / "plain.html"
    fedmpi("report", str(folders), "--html", str(page))
    text = page.read_text()
    assert 'data-axis="virtual"' in text
    assert "devices in use" in text
    assert "virtual time to it" in text
    run(only(tmp_path / "plain", "case=fedavg"), World(), Silent(), StopRequest())
    fedmpi("report", str(tmp_path / "plain"), "--html", str(plain))
    assert 'data-axis="virtual"' not in plain.read_text()
