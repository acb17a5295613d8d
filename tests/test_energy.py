"""Counters of energy in made folders, their wrap-around, and who may not read them."""

import math
import sys
from types import SimpleNamespace

import pytest

from fedmpi import energy


@pytest.fixture
def powercap(tmp_path):
    """Return a function that makes domains, or sets their counters: ``number="name microjoules"``."""

    def write(**counters):
        for number, text in counters.items():
            folder = tmp_path / f"intel-rapl:{number.strip('_').replace('_', ':')}"
            folder.mkdir(exist_ok=True)
            files = dict(zip(("name", "energy_uj"), text.split(), strict=True), max_energy_range_uj="1000")
            for file, content in files.items():
                (folder / file).write_text(f"{content}\n")

    write.folder = tmp_path
    return write


def test_packages_and_their_memory_are_added(powercap):
    powercap(_0="package-0 100", _0_0="core 50", _0_1="dram 10", _1="package-1 7", _2="psys 500")
    (powercap.folder / "intel-rapl:0").with_name("intel-rapl-mmio:0").symlink_to("intel-rapl:0")
    found = energy.host(powercap.folder)
    assert found.describe() == "package-0, dram, package-1"
    assert found.joules() == 0.0
    powercap(_0="package-0 400", _0_0="core 150", _0_1="dram 30", _1="package-1 8")
    assert found.joules() == pytest.approx(321e-6)


def test_a_counter_that_starts_again_from_zero_goes_on(powercap):
    powercap(_0="package-0 900")
    found = energy.host(powercap.folder)
    for microjoules, joules in ((200, 300e-6), (950, 1050e-6), (0, 1100e-6)):
        powercap(_0=f"package-0 {microjoules}")
        assert found.joules() == pytest.approx(joules)


def test_without_rapl_it_is_not_available(tmp_path):
    assert energy.host(tmp_path / "none").describe() == "not available (no RAPL)"
    assert math.isnan(energy.host(tmp_path / "none").joules())


def test_one_counter_that_may_not_be_read_makes_all_unavailable(powercap, monkeypatch):
    powercap(_0="package-0 1", _1="package-1 1")
    original = energy.RaplDomain

    def refuse(folder):
        if folder.name.endswith("1"):
            raise PermissionError(13, "Permission denied")
        return original(folder)

    monkeypatch.setattr(energy, "RaplDomain", refuse)
    assert energy.host(powercap.folder).describe() == "not available (Permission denied)"


def test_a_counter_that_fails_later_gives_nan_from_then_on(powercap):
    powercap(_0="package-0 1")
    found = energy.host(powercap.folder)
    (powercap.folder / "intel-rapl:0" / "energy_uj").write_text("")
    assert math.isnan(found.joules())
    powercap(_0="package-0 5")
    assert math.isnan(found.joules())


class NvmlError(Exception):
    pass


@pytest.fixture
def nvml(monkeypatch):
    """NVML with two GPUs, whose counters are in millijoules."""
    counters = {"GPU-a": 5000, "GPU-b": 100}

    def handle(uuid):
        if uuid not in counters:
            raise NvmlError("Not Found")
        return uuid

    module = SimpleNamespace(
        NVMLError=NvmlError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=handle,
        nvmlDeviceGetTotalEnergyConsumption=counters.__getitem__,
    )
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return counters


@pytest.fixture
def clock(monkeypatch):
    """A clock, in seconds, that tests move."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(energy.time, "monotonic", lambda: now.seconds)
    return now


def test_gpus_are_added_from_when_they_were_found(nvml, clock):
    found = energy.gpus(["GPU-a", "GPU-b"])
    assert found.joules() == 0.0
    nvml["GPU-a"] += 2500
    nvml["GPU-b"] += 1
    clock.seconds += 0.2
    assert found.joules() == pytest.approx(2.501)


def test_a_gpu_is_read_ten_times_a_second_at_most(nvml, clock):
    found = energy.gpus(["GPU-a"])
    nvml["GPU-a"] += 1000
    clock.seconds += 0.05
    assert found.joules() == 0.0
    clock.seconds += 0.06
    assert found.joules() == 1.0
    nvml["GPU-a"] += 1000
    clock.seconds += 0.05
    assert found.joules() == 1.0


def test_a_gpu_that_nvml_does_not_know_is_not_available(nvml):
    assert energy.gpus(["GPU-c"]).describe() == "not available (Not Found)"
    assert energy.gpus([]).describe() == "not available (no GPU)"


def test_without_nvml_the_reason_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert energy.gpus(["GPU-a"]).describe() == "not available (no NVML: pip install nvidia-ml-py)"
