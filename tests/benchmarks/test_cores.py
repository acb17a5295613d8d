import pytest

from fedmpi.benchmarks import cores
from fedmpi.benchmarks.cores import measure
from fedmpi.benchmarks.samples import Turns
from fedmpi.errors import RunFailed


def test_rounds_alone_and_side_by_side_are_taken_in_turn(tiny, source, world):
    report = measure(tiny(), source, world, processes=2, turns=Turns(3, 1))
    (found,) = report.measurements
    assert set(found.figures) == {"alone_seconds", "beside_seconds", "gain"}
    assert {len(samples.values) for samples in found.figures.values()} == {3}
    for alone, beside, gain in zip(*(found.figures[name].values for name in found.figures), strict=True):
        assert gain == pytest.approx(2 * alone / beside)
    assert "2 processes side by side do" in report.statements[0]


def dies(*_):
    raise SystemExit(1)


def test_a_companion_that_ends_is_not_waited_for(tiny, source, world, monkeypatch):
    monkeypatch.setattr(cores, "_work", dies)
    with pytest.raises(RunFailed, match="has ended"):
        measure(tiny(), source, world, processes=2, turns=Turns(1, 0))


def test_more_processes_than_cores_are_refused(fedmpi):
    done = fedmpi("bench", "cores", "synthetic/quick", "--set", "algorithm=fedavg", "--processes", "4096")
    assert done.returncode == 2
    assert "4096 processes need as many cores" in done.stderr
