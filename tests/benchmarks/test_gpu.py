"""The GPU kit on the CPU: every part works there, finds what is wrong, and is ended when it takes too long."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from torch.autograd import DeviceType

from fedmpi.benchmarks.gpu import agreement, driver, launched, plan, profile
from fedmpi.benchmarks.gpu.part import REQUEST
from fedmpi.cli.bench_gpu import without_paths
from fedmpi.cli.bench_gpu_tables import BEGIN, END, placed
from fedmpi.config.locations import find
from fedmpi.config.suite import read
from fedmpi.datasets.source import DataSource
from fedmpi.errors import BadInput
from fedmpi.registry.check import check_suite
from fedmpi.store.provenance import collect


@pytest.fixture
def request_of(source):
    def make(part, setting="synthetic", **more):
        return plan.Request(part, setting, "cpu", more.pop("source", source), repetitions=2, warmup=1)

    return make


@pytest.fixture
def patient(monkeypatch):
    """Let every part take ten minutes: a test asserts no time."""
    for part in plan.LIMITS_S:
        monkeypatch.setitem(plan.LIMITS_S, part, 600.0)


@pytest.fixture
def run(tmp_path, patient):
    """Return a function that runs parts and returns their records, which the file has, too."""

    def start(*requests):
        report = driver.run(requests, {"device": "cpu"}, {}, tmp_path / "gpu.json", lambda line: None)
        assert json.loads((tmp_path / "gpu.json").read_text()) == report
        return report["parts"]

    return start


def test_the_whole_kit_on_made_data_and_its_tables_in_a_page(fedmpi, tmp_path, patient):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nNothing yet.\n{END}\nafter\n")
    options = ("--device", "cpu", "--settings", "synthetic", "--repetitions", "2", "--warmup", "1")
    done = fedmpi("bench", "gpu", *options, "--out", "gpu.json", "--page", page)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "gpu.json").read_text())
    assert {part["part"]: part["status"] for part in report["parts"]} == dict.fromkeys(
        plan.LIMITS_S, "complete"
    )
    by_part = {part["part"]: part["findings"] for part in report["parts"]}
    assert {each["kernels"] for each in by_part["agreement"]} == {"grouped", "csr"}
    times, phases = by_part["rounds"]
    assert [len(times["seconds"][program]["samples"]) for program in ("fedmpi", "peer")] == [2, 2]
    assert times["client_seconds"] == times["seconds"]["fedmpi"]["median"] / 4
    alone = phases["alone"]
    assert alone["round"] > max(alone["train"], alone["evaluate"]) > 0.0
    assert "and their parts" in done.stdout
    assert [each["program"] for each in by_part["profile"]] == ["fedmpi", "peer"]
    assert all(each["operators"] > 0 and each["kernels"] == 0 for each in by_part["profile"])
    for each in by_part["resume"]:
        assert each["agrees"] and each["killed_after"] >= 5 and 0 < each["resumed_at"] < each["rounds"]
    assert [each["agrees"] for each in by_part["ranks"]] == [True, True]
    assert [(each["ranks"], each["agrees"]) for each in by_part["sharing"]] == [
        (1, True),
        (2, True),
        (4, True),
    ]
    assert "| synthetic | 1 | 4 | " in done.stdout
    assert page.read_text() == f"before\n{BEGIN}\n{done.stdout.rstrip()}\n{END}\nafter\n"
    again = fedmpi("bench", "gpu", "--from", "gpu.json")
    assert again.stdout == done.stdout
    assert "| synthetic | 4 | `grouped` |" in done.stdout


def test_all_parts_together_take_ten_minutes_at_most(source):
    asked = plan.requests(tuple(plan.LIMITS_S), plan.SETTINGS, "cuda", source, 10, 3)
    assert len(asked) == 13
    assert sum(each.limit_s for each in asked) <= 600


def test_a_request_survives_the_command_line(request_of, tmp_path):
    asked = request_of("rounds", source=DataSource(tmp_path, tmp_path / "mirror", offline=True))
    for each in (asked, request_of("rounds")):
        assert REQUEST.validate_json(REQUEST.dump_json(each)) == each


def test_whole_runs_read_the_data_that_the_kit_was_given(request_of, tmp_path):
    asked = request_of("sharing", source=DataSource(tmp_path / "data", tmp_path / "mirror", offline=True))
    words = launched._command(asked, "gpu/rounds", ())
    assert words[-5:] == ["--mirror", f"{tmp_path}/mirror", "--data", f"{tmp_path}/data", "--offline"]


def test_a_part_that_is_late_fails_or_has_no_data_is_named_and_the_next_one_runs(
    run, request_of, monkeypatch
):
    monkeypatch.setitem(plan.LIMITS_S, "agreement", 0.3)
    asked = ("agreement", ""), ("rounds", "nonsense"), ("rounds", "proteins"), ("device", "")
    late, wrong, without, device = run(*(request_of(*each) for each in asked))
    assert (late["status"], late["reason"]) == ("timed out", "ended after 0 s")
    assert wrong["status"] == "failed" and "nonsense" in wrong["reason"]
    assert without["status"] == "skipped" and "PROTEINS" in without["reason"]
    assert (device["status"], device["findings"][0]["device"]) == ("complete", "cpu")


@pytest.mark.parametrize(
    ("code", "agrees", "expected"),
    [(1, True, ("failed", "CUDA error: an illegal access")), (0, False, ("differs", "gat"))],
)
def test_a_part_keeps_its_findings_whether_it_failed_later_or_disagrees(request_of, code, agrees, expected):
    found = [{"case": "gin", "agrees": True}, {"case": "gat", "agrees": agrees}]
    outcome = driver.Outcome(request_of("agreement", ""), findings=found)
    outcome.errors = ["Traceback", "  CUDA error: an illegal access"]
    driver._conclude(outcome, code, False)
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
    (checked,), (other,) = (
        check_suite(read(find("gpu/checks"), ["case=gin", *more])) for more in ((), (change,))
    )
    found = agreement.compare(*(agreement._run(each, source, world) for each in (checked, other)))
    assert found["forward"] == 0.0
    assert found[wrong] > agreement.LIMITS[wrong]


def event(key, count, device=DeviceType.CPU, host_us=0.0, device_us=0.0, label=False):
    return SimpleNamespace(
        key=key,
        count=count,
        device_type=device,
        self_cpu_time_total=host_us,
        self_device_time_total=device_us,
        is_user_annotation=label,
    )


def test_a_profile_counts_kernels_launches_copies_and_synchronisations():
    events = [
        event("aten::mm", 7),
        event("cudaLaunchKernel", 5, host_us=20.0),
        event("cudaGraphLaunch", 2, host_us=30.0),
        event("cudaStreamSynchronize", 3, host_us=400.0),
        event("cudaDeviceSynchronize", 2, host_us=10.0),
        event("Optimizer.step#Adam.step", 9, DeviceType.CUDA, device_us=500.0, label=True),
        event("gemm", 40, DeviceType.CUDA, device_us=600.0),
        event("Memcpy HtoD (Pinned -> Device)", 4, DeviceType.CUDA, device_us=10.0),
    ]
    found = profile.counts(events, 1e-3)
    assert found == {
        "wall_seconds": 1e-3, "operators": 7, "kernels": 40, "copies": 4, "launches": 7, "synchronisations": 3,
        "launch_share": pytest.approx(0.05), "device_share": pytest.approx(0.6),
    }  # fmt: skip


@pytest.mark.parametrize("page", ["", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}\n{END}\n{BEGIN}\n{END}"])
def test_a_page_without_both_marks_is_refused(page):
    with pytest.raises(BadInput, match="once each"):
        placed(page, "tables")


def test_tables_with_a_mark_are_refused():
    with pytest.raises(BadInput, match="no page takes it"):
        placed(f"{BEGIN}\n{END}", f"on {END}")


@pytest.mark.parametrize(
    "parts", ["[]", '["x"]', '[{"part": "device"}]', '[{"part": "device", "findings": [3]}]']
)
def test_other_json_is_refused_in_one_line(fedmpi, tmp_path, parts):
    (tmp_path / "other.json").write_text(f'{{"benchmark": "gpu", "parts": {parts}}}')
    done = fedmpi("bench", "gpu", "--from", "other.json")
    assert done.returncode == 2
    assert "not a report of fedmpi bench gpu" in done.stderr


def test_what_cannot_be_measured_is_refused_in_one_line(fedmpi, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "deep.json").write_text("[" * 200_000)
    (tmp_path / "huge.json").write_text(f'{{"benchmark": "gpu", "parts": {10**400}}}')
    for options, line in (
        (("--device", "tpu"), "--device tpu: cuda or cpu"),
        (("--settings", "nci"), 'there is no nci; did you mean "nci1"?'),
        (("--parts", "rings"), "--parts: there is no rings"),
        (("--parts", "rounds,"), "--parts 'rounds,': give names with commas"),
        (
            ("--parts", "sharing", "--settings", "proteins"),
            "--parts sharing: of the settings synthetic, nci1 only",
        ),
        (("--out", "here"), "--out here: a folder, where a file is to be written"),
        (("--from", "none.json"), "--from none.json: cannot read this report"),
        (("--from", "deep.json"), "--from deep.json: brackets deeper than 32 levels"),
        (("--from", "huge.json"), "--from huge.json: "),
        (
            ("--from", "none.json", "--device", "cpu", "--offline"),
            "--from measures nothing: leave --offline and --device out",
        ),
        (("--page", "none.md"), "--page none.md: No such file"),
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
    assert done.stderr.splitlines()[-1].endswith('torch sees no GPU here; use "cpu" or a CUDA build of torch')


def test_several_files_are_shown_one_after_another_and_hold_no_folder(fedmpi):
    folder = Path(__file__).parents[2] / "results/reference/gpu"
    files = [folder / name for name in ("h100.json", "h100-resume.json")]
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
