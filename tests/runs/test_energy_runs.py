"""Energy in records: once per node, by phase, in no result, and absent where nothing counts it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from fedmpi import energy
from fedmpi.analysis.summary import summarise
from fedmpi.comm.world import World
from fedmpi.config.suite import read
from fedmpi.exchange.meter import Energy, Meter, find_energy
from fedmpi.programs.position import Position
from fedmpi.registry.check import check_suite
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from fedmpi.store.schema import PHASES


class Ticking:
    """A counter that has used a joule more at every look."""

    name = "package-0"

    def __init__(self):
        self.looks = -1

    def joules(self):
        self.looks += 1
        return float(self.looks)


@pytest.fixture
def run(fedmpi, tiny_suite, tmp_path, monkeypatch):
    """Return a function that runs a case with counters or without, and returns its folder."""

    def start(name, counters=(), *options):
        monkeypatch.setattr(energy, "host", lambda: energy.Counters(counters, "no RAPL"))
        done = fedmpi("run", tiny_suite, "--case", "fedavg", "--out", name, *options)
        assert done.returncode == 0, done.stderr
        return tmp_path / name / "fedavg"

    return start


def joules_of(names):
    return [name for name in names if "joules" in name]


def test_joules_are_recorded_by_round_and_by_phase_and_reported(run, fedmpi, tmp_path):
    """Where nothing counts them there are none, the provenance says why, and the results are the same."""
    folder, plain = run("counted", [Ticking()]), run("plain")
    assert differences(folder, plain) == []
    (attempt,) = load_run(folder).attempts
    host, phases = (attempt.measurements[name] for name in ("host_joules", "phase_joules"))
    assert (host.shape, phases.shape) == ((4, 1), (4, 1, len(PHASES)))
    assert (host > 0).all()
    assert (phases[:, 0, [PHASES.index("train"), PHASES.index("evaluate")]] > 0).all()
    assert attempt.provenance["energy"] == {"host": "package-0"}
    assert "device_joules" not in attempt.measurements
    found = summarise(load_run(folder), target=0.01)
    assert found["joules"] == found["host_joules"] == host.sum()
    assert found["train_joules"] == phases[:, 0, 0].sum()
    assert found["to_target"]["joules"] == host[: found["to_target"]["rounds"]].sum()

    (without,) = load_run(plain).attempts
    assert joules_of([*without.measurements, *summarise(load_run(plain), target=0.01)]) == []
    assert without.provenance["energy"] == {"host": "not available (no RAPL)"}
    for each, there in ((folder, True), (plain, False)):
        done = fedmpi("report", each, "--target", "0.01", "--html", "page.html")
        assert done.returncode == 0, done.stderr
        page = (tmp_path / "page.html").read_text()
        assert ("energy by phase" in page, "energy to it" in page) == (there, there)
        assert ("host: not available (no RAPL)" in page) != there
    table = fedmpi("report", folder, "--target", "0.01").stdout
    assert "s to" in table and "J to" in table  # headings are broken into lines


@pytest.mark.parametrize(("first", "then"), [(True, False), (False, True)])
def test_a_run_may_go_on_where_counters_are_others(run, fedmpi, monkeypatch, first, then):
    from fedmpi.runs import rounds

    original = rounds.Rounds.run

    def stop_after_two(self, number, *, stop, checkpoint):
        stop.requested = number == 1
        return original(self, number, stop=stop, checkpoint=checkpoint)

    monkeypatch.setattr(rounds.Rounds, "run", stop_after_two)
    with pytest.raises(AssertionError, match="stopped by a signal"):
        run("moved", [Ticking()] if first else ())
    monkeypatch.setattr(rounds.Rounds, "run", original)
    folder = run("moved", [Ticking()] if then else (), "--resume")
    attempts = load_run(folder).attempts
    assert ["host_joules" in attempt.measurements for attempt in attempts] == [first, first]
    found = summarise(load_run(folder))
    if first:
        assert np.isnan(attempts[1].measurements["host_joules"]).all()
        assert np.isnan(found["joules"])
    assert ("joules" in found) == first


def meter_of(counters, reads):
    """Return the meter of a rank of a run that counts the host's energy."""
    counted = Energy(counters, energy.Counters(()), reads, of_host=True, of_devices=False)
    return Meter(World().collectives, Position(), energy=counted)


def test_ranks_that_do_not_read_have_rows_of_the_same_width():
    counters = energy.Counters([Ticking()])
    reading, silent = (meter_of(counters, reads) for reads in (True, False))
    with reading.phase("train"), silent.phase("train"):
        pass
    rows = np.stack([reading.snapshot(), silent.snapshot()])
    assert rows.shape == (2, reading.width) == (2, silent.width)
    table = reading.table(rows)
    assert np.isnan(table["host_joules"]).tolist() == [False, True]
    assert np.isnan(table["phase_joules"][1]).all()
    assert table["phase_joules"][0].tolist() == [1.0, 0, 0, 0, 0, 0]


def test_a_phase_inside_another_is_taken_from_it():
    meter = meter_of(energy.Counters([Ticking()]), reads=True)
    with meter.phase("train"), meter.phase("communicate"):
        pass
    (joules,) = meter.table(meter.snapshot()[np.newaxis])["phase_joules"]
    phases = dict(zip(PHASES, joules, strict=True))
    assert (phases["communicate"], phases["train"]) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("node", "workers", "reader"),
    [([0], [0], 0), ([0, 1, 2], [1, 2], 1), ([0, 1], [1, 0], 0), ([2, 3], [1, 2, 3], 2), ([0], [1, 2], 0)],
)
def test_one_rank_of_each_node_reads(node, workers, reader, monkeypatch, tiny_suite):
    (checked, *_) = check_suite(read(tiny_suite))
    monkeypatch.setattr(energy, "host", lambda: energy.Counters([Ticking()]))
    same = {"node_ranks": node, "workers": lambda shared: workers, "any": lambda mine: mine}
    worlds = [SimpleNamespace(rank=rank, **same) for rank in node]
    assert [world.rank for world in worlds if find_energy(checked.case, world).reads] == [reader]


def test_info_says_whether_energy_is_counted(fedmpi, monkeypatch):
    monkeypatch.setattr(energy, "host", lambda: energy.Counters((), "no RAPL"))
    assert json.loads(fedmpi("info").stdout)["energy"] == "not available (no RAPL)"
