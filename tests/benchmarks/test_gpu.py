"""The GPU kit on the CPU: every part works there, finds what is wrong, and is ended when it takes too long."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.autograd import DeviceType

from fedmpi.benchmarks import whole_runs
from fedmpi.benchmarks.cases import choose
from fedmpi.benchmarks.gpu import agreement, kit, launched, rounds, work
from fedmpi.benchmarks.samples import Turns
from fedmpi.cli.bench_gpu import markdown, without_paths
from fedmpi.datasets.source import DataSource
from fedmpi.registry.check import check_suite
from fedmpi.store.provenance import collect

REFERENCE = Path(__file__).parents[2] / "results/reference/gpu"


@pytest.fixture
def request_of(source):
    def make(part, setting="synthetic", data=source):
        return kit.Request(part, setting, "cpu", data, Turns(2, 1))

    return make


@pytest.fixture
def patient(monkeypatch):
    """Let every part take ten minutes: a test asserts no time."""
    for part, (_, code) in kit.PARTS.items():
        monkeypatch.setitem(kit.PARTS, part, (600.0, code))


@pytest.fixture
def here(fedmpi, monkeypatch):
    """Have whole runs on one rank made in this process: what is claimed of them is what they wrote."""

    def run(command, out, starter=(), *what):
        if starter:
            whole_runs.run(command, out, starter, *what)
        else:
            assert fedmpi(*command, "--out", out).returncode == 0

    monkeypatch.setattr(launched, "run", run)


def table_of(part, findings):
    """Return the tables of a report in which one part found this."""
    report = json.loads((REFERENCE / "h100-resume.json").read_text())
    found = {"part": part, "setting": "", "status": "complete", "reason": "", "findings": findings}
    return markdown({**report, "parts": [report["parts"][0], found]})


@pytest.mark.long
def test_parts_on_made_data_and_their_tables(fedmpi, tmp_path, patient):
    options = ("--device", "cpu", "--settings", "synthetic", "--repetitions", "2", "--warmup", "1")
    done = fedmpi("bench", "gpu", *options, "--parts", "rounds", "--out", "gpu.json")
    assert done.returncode == 0, done.stderr
    device, timed = json.loads((tmp_path / "gpu.json").read_text())["parts"]
    assert (device["status"], device["findings"][0]["device"]) == ("complete", "cpu")
    times, phases = timed["findings"]
    assert [len(times["seconds"][program]["samples"]) for program in ("fedmpi", "peer")] == [2, 2]
    assert times["client_seconds"] == times["seconds"]["fedmpi"]["median"] / 4
    alone = phases["alone"]
    assert alone["round"] > max(alone["train"], alone["evaluate"]) > 0.0
    assert "and their parts" in done.stdout
    again = fedmpi("bench", "gpu", "--from", "gpu.json")
    assert again.stdout == done.stdout
    assert "| synthetic | 4 | `grouped` |" in done.stdout


def test_every_case_of_the_checks_agrees_and_one_that_raises_is_a_finding(request_of, monkeypatch):
    def checked(suite):
        cases = check_suite(suite)
        bad = cases[0].case.model_copy(update={"name": "bad", "rounds": None})
        return [*cases, replace(cases[0], case=bad)]

    monkeypatch.setattr(agreement, "check_suite", checked)
    *found, bad = agreement.findings(request_of("agreement", ""))
    assert len(found) == 37
    assert {each["kernels"] for each in found} == {"grouped", "csr"}
    assert all(each["agrees"] for each in found)
    assert (bad["case"], bad["agrees"]) == ("bad", False) and "error" in bad


def test_models_are_timed_by_both_kernels(request_of, monkeypatch):
    monkeypatch.setattr(rounds, "_MODELS", ("gat", "fedgraphnn/sage"))
    found = list(rounds.by_model(request_of("models")))
    assert [each["model"] for each in found] == ["gat", "fedgraphnn/sage"]
    for each in found:
        assert [len(each["seconds"][kernels]["samples"]) for kernels in ("csr", "grouped")] == [3, 3]
    assert "| synthetic | `fedgraphnn/sage` | " in table_of("models", found)


def test_a_profile_is_of_both_programs(request_of):
    found = list(rounds.profiled(request_of("profile")))
    assert "| synthetic | PyTorch Geometric |" in table_of("profile", found)
    assert [each["program"] for each in found] == ["fedmpi", "peer"]
    assert all(each["operators"] > 0 and each["kernels"] == 0 for each in found)
    own = found[0]["work"]
    assert 0 < own["in_a_row"] <= own["kernels"] < found[0]["operators"] and "work" not in found[1]
    assert min(own["flops"], own["bytes"], *own["h100_seconds"].values()) > 0
    assert "| synthetic | 0." in table_of("profile", found).split("asks of a GPU")[1]


def test_of_what_operators_a_gpu_has_kernels_and_which_bytes_they_move():
    rows = torch.ones(4, 8)
    with work.Counted() as counted:
        product = rows.T[:5] @ rows
        torch.empty_like(rows).copy_(rows)
        torch.cat([product[0], product[1]])
    assert counted.kernels == 3
    assert counted.moved_bytes == 4 * ((5 * 4 + 4 * 8 + 5 * 8) + (32 + 32) + (8 + 8 + 16))
    leaf = torch.ones(3, 4, 8, requires_grad=True)
    with work.Counted() as counted:
        (leaf @ rows.T).add_(1.0).sum().backward()
    assert counted.kernels == len(["mm", "add_", "sum", "ones_like", "mm"])  # views are between them


@pytest.mark.long
def test_runs_that_were_killed_are_resumed_and_equal(request_of, here):
    found = list(launched.resume(request_of("resume", "")))
    assert [each["case"] for each in found] == ["grouped", "csr"]
    for each in found:
        assert each["agrees"] and each["killed_after"] >= 5 and 0 < each["resumed_at"] < each["rounds"]


@pytest.mark.long
def test_several_ranks_have_the_results_of_one_also_by_buffers_of_the_device(request_of, here):
    found = list(launched.ranks(request_of("ranks", "")))
    assert [each["agrees"] for each in found] == [True, True]
    assert "- 2 ranks, reduction.buffers = device: the same bits" in table_of("ranks", found)


@pytest.mark.long
def test_ranks_that_share_a_device_are_timed_and_agree(request_of, here, monkeypatch):
    monkeypatch.setattr(launched, "_SHARING", (1, 2))
    found = list(launched.sharing(request_of("sharing")))
    assert [(each["ranks"], each["agrees"]) for each in found] == [(1, True), (2, True)]
    assert all(each["round_seconds"] > 0 for each in found)
    assert "| synthetic | 1 | 2 | " in table_of("sharing", found)


@pytest.mark.long
def test_sums_without_mpi_are_timed_and_agree(request_of, here):
    found = list(launched.transport(request_of("transport")))
    assert [(each["ranks"], each["transport"]) for each in found] == [(2, "mpi"), (2, "gloo")]
    assert all(each["agrees"] and 0 < each["sum_seconds"] < each["round_seconds"] for each in found)
    assert "| synthetic | 2 | `gloo` | " in table_of("transport", found)


def test_all_parts_together_take_ten_minutes_at_most(source):
    asked = kit.requests(tuple(kit.PARTS), kit.SETTINGS, "cuda", source, Turns(10, 3))
    assert len(asked) == 16
    assert sum(each.limit_s for each in asked) <= 600


def test_whole_runs_read_the_data_that_the_kit_was_given(request_of):
    asked = request_of("sharing", data=DataSource(Path("data"), Path("mirror"), offline=True))
    words = launched._command(asked, "gpu/rounds", ())
    assert words[-5:] == ["--mirror", "mirror", "--data", "data", "--offline"]


def test_a_part_that_is_late_or_has_no_data_is_named_and_the_next_one_runs(
    request_of, patient, monkeypatch, tmp_path
):
    monkeypatch.setitem(kit.PARTS, "agreement", (0.3, "agreement:findings"))
    asked = [request_of("agreement", ""), request_of("rounds", "proteins")]
    report = kit.run(asked, {"device": "cpu"}, {}, tmp_path / "gpu.json", lambda line: None)
    assert json.loads((tmp_path / "gpu.json").read_text()) == report
    late, without = report["parts"]
    assert (late["status"], late["reason"]) == ("timed out", "ended after 0 s")
    assert without["status"] == "skipped" and "PROTEINS" in without["reason"]


@pytest.mark.parametrize(
    ("code", "agrees", "expected"),
    [(1, True, ("failed", "CUDA error: an illegal access")), (0, False, ("differs", "gat"))],
)
def test_a_part_keeps_its_findings_whether_it_failed_later_or_disagrees(request_of, code, agrees, expected):
    found = [{"case": "gin", "agrees": True}, {"case": "gat", "agrees": agrees}]
    outcome = kit.Outcome(request_of("agreement", ""), findings=found)
    outcome.errors = ["Traceback", "  CUDA error: an illegal access"]
    kit._conclude(outcome, code, False)
    assert (outcome.status, outcome.reason, outcome.good) == (*expected, False)
    assert outcome.record()["findings"] == found


def arrays(**changes):
    values = {
        "forward": np.array([1.0, 2.0]),
        "gradient": np.array([0.5, -1.0]),
        "steps": np.array([[1, 2]]),
        "train_loss": np.array([[0.7, np.nan]]),
        "test_loss": np.array([[0.7, 0.9]]),
    }
    return {name: np.array(changes.get(name, value)) for name, value in values.items()}


def test_differences_are_shares_of_the_largest_value_and_counts_must_be_equal():
    assert agreement.compare(arrays(), arrays()) == {"forward": 0.0, "gradient": 0.0, "rounds": 0.0}
    assert agreement.compare(arrays(), arrays(forward=[1.0, 2.1]))["forward"] == pytest.approx(0.05)
    assert agreement.compare(arrays(), arrays(gradient=[0.5, -0.9]))["gradient"] == pytest.approx(0.1)
    assert agreement.compare(arrays(), arrays(test_loss=[[0.7, 0.81]]))["rounds"] == pytest.approx(0.1)
    assert agreement.compare(arrays(), arrays(steps=[[1, 3]]))["rounds"] == np.inf
    assert agreement.compare(arrays(), arrays(gradient=[0.5, np.nan]))["gradient"] == np.inf


@pytest.mark.parametrize(
    ("change", "wrong"), [("model.dropout=0.4", "gradient"), ("optimizer.lr=0.01", "rounds")]
)
def test_other_kernels_would_be_seen(change, wrong, source, world):
    cases = (choose("gpu/checks", ["case=gin", *more]) for more in ((), (change,)))
    found = agreement.compare(*(agreement._run(each, source, world) for each in cases))
    assert found["forward"] == 0.0
    assert found[wrong] > agreement.LIMITS[wrong]


def test_a_profile_counts_kernels_launches_copies_and_synchronisations():
    host, device = DeviceType.CPU, DeviceType.CUDA
    names = ("key", "count", "device_type", "self_cpu_time_total", "self_device_time_total")
    events = [
        SimpleNamespace(
            is_user_annotation=values[0].startswith("Opt"), **dict(zip(names, values, strict=True))
        )
        for values in (
            ("aten::mm", 7, host, 0, 0),
            ("cudaLaunchKernel", 5, host, 20, 0),
            ("cudaGraphLaunch", 2, host, 30, 0),
            ("cudaStreamSynchronize", 3, host, 400, 0),
            ("cudaDeviceSynchronize", 2, host, 10, 0),
            ("Optimizer.step#Adam.step", 9, device, 0, 500),
            ("gemm", 40, device, 0, 600),
            ("Memcpy HtoD (Pinned -> Device)", 4, device, 0, 10),
        )
    ]
    found = rounds.counts(events, 1e-3)
    assert found == {
        "wall_seconds": 1e-3, "operators": 7, "kernels": 40, "copies": 4, "launches": 7, "synchronisations": 3,
        "launch_share": pytest.approx(0.05), "device_share": pytest.approx(0.6),
    }  # fmt: skip


def test_what_cannot_be_measured_is_refused_in_one_line(fedmpi, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "deep.json").write_text("[" * 200_000)
    (tmp_path / "huge.json").write_text(f'{{"benchmark": "gpu", "parts": {10**400}}}')
    others = ("[]", '["x"]', '[{"part": "device"}]', '[{"part": "device", "findings": [3]}]')
    for number, parts in enumerate(others):
        (tmp_path / f"{number}.json").write_text(f'{{"benchmark": "gpu", "parts": {parts}}}')
    for options, line in (
        *((("--from", f"{number}.json"), "not a report of fedmpi bench gpu") for number in range(4)),
        (("--device", "tpu"), "'tpu' is not one of 'cuda', 'cpu'"),
        (("--settings", "nci"), 'there is no "nci"; did you mean "nci1"?'),
        (("--parts", "rounds,"), '--parts: there is no "": give names with commas'),
        (("--parts", "sharing", "--settings", "proteins"), "sharing: of the settings synthetic, nci1 only"),
        (
            ("--parts", "models", "--settings", "proteins"),
            "models: of the settings synthetic, sider, cora only",
        ),
        (("--out", "here"), "--out here: a folder, where a file is to be written"),
        (("--from", "none.json"), "--from none.json: cannot read this report"),
        (("--from", "deep.json"), "--from deep.json: brackets deeper than 32 levels"),
        (("--from", "huge.json"), "--from huge.json: "),
        (
            ("--from", "a", "--device", "cpu", "--offline"),
            "measures nothing: leave --offline and --device out",
        ),
    ):
        done = fedmpi("bench", "gpu", *options)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert line in done.stderr


def test_without_a_gpu_the_kit_says_so(fedmpi, patient):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    done = fedmpi("bench", "gpu", "--parts", "rounds", "--out", "gpu.json")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        'torch sees no GPU here; use "cpu", or a CUDA or ROCm build of torch'
    )


def test_several_files_are_shown_one_after_another_and_hold_no_folder(fedmpi):
    files = [REFERENCE / name for name in ("h100.json", "h100-resume.json")]
    done = fedmpi("bench", "gpu", *(part for path in files for part in ("--from", path)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("all agree") < done.stdout.index("killed after")
    assert not any('"/' in path.read_text() for path in files)


def test_the_provenance_of_a_file_names_no_folder():
    whole = collect({}, {})
    kept = without_paths(whole)
    assert any(package["path"] for package in whole["packages"].values()) and "executable" in whole
    assert '"/' in json.dumps(whole) and '"/' not in json.dumps(kept)
    assert kept["packages"]["numpy"] == {"version": np.__version__}
