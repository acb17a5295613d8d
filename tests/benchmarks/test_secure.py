import pytest

from fedmpi.benchmarks import secure_sum
from fedmpi.benchmarks.complexity import _QUANTITIES, fits
from fedmpi.benchmarks.samples import Measurement, Samples
from fedmpi.benchmarks.secure_sum import Setting, Sum
from fedmpi.errors import RunFailed

SIZE = 100
PROTOCOLS = ("secagg", "secagg+", "lightsecagg")


@pytest.mark.parametrize("clients", [4, 9, 25, 40])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_share_of_dropouts_leaves_clients_enough(protocol, clients):
    for percent in range(0, 71, 2):
        setting = Setting(protocol, SIZE, clients, percent / 100)
        roster = setting.make().roster(b"run", 0, 0, range(clients))
        assert roster.threshold <= clients - setting.gone, setting


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_sum_with_dropouts_is_the_plain_one_and_its_bytes_are_those_of_the_messages(protocol):
    seconds, sent = Sum(Setting(protocol, SIZE, 10, 0.3), seed=1).run()
    assert set(seconds) == {"keys", "shares", "upload", "answer", "add", "unmask"}
    # a sealed message: 28 bytes around two shares of 33 bytes, or around a piece of 100 / (7 - 5) elements
    sealed = 28 + (4 * 50 if protocol == "lightsecagg" else 66)
    vault = 0 if protocol == "lightsecagg" else 28 + 32 * 9
    answer = 4 * 50 if protocol == "lightsecagg" else 33 * 10
    assert sent == {
        "client_offline_bytes": 32 + 9 * sealed + vault,
        "client_upload_bytes": 400,
        "client_answer_bytes": answer,
        "server_received_bytes": 10 * (32 + vault) + 7 * (400 + answer),
    }


def test_a_sum_that_is_not_the_plain_one_ends_the_benchmark(monkeypatch):
    class Wrong(secure_sum.SecAgg):
        def add(self, upload, total):
            super().add(upload + 1, total)

    monkeypatch.setattr(secure_sum, "SecAgg", Wrong)
    with pytest.raises(RunFailed, match="secagg, 100 parameters, 8 clients, 0 %: the sum is not the plain"):
        Sum(Setting("secagg", SIZE, 8, 0.0), seed=1).run()


def test_rings_have_fewer_neighbours_than_all_where_that_is_safe():
    assert Setting("secagg+", SIZE, 100, 0.1).labels()["neighbours"] == 36
    assert Setting("secagg+", SIZE, 32, 0.1).labels()["neighbours"] == 31
    assert Setting("secagg", SIZE, 100, 0.1).labels()["neighbours"] == 99


def test_a_power_law_gives_its_exponents_and_the_formula_its_error():
    def point(clients, size):
        labels = {"protocol": "secagg", "parameters": size, "clients": clients, "neighbours": clients - 1}
        seconds, used = Samples.of("s", [3e-9 * size * clients**2]), (each.figures for each in _QUANTITIES)
        figures = {name: seconds for names in used for name in names}
        return Measurement({**labels, "dropout": "10 %"}, figures)

    points = [point(clients, size) for clients in (8, 16, 32) for size in (1000, 10_000)]
    found = {each.quantity: each for each in fits(points)}
    recovery, offline = found["recovery at the server"], found["offline bytes of a client"]
    assert recovery.exponents["N"] == pytest.approx((2, 0), abs=1e-6)
    assert recovery.exponents["d"] == pytest.approx((1, 0), abs=1e-6)
    assert recovery.coefficients == pytest.approx((3e-9, 0), abs=1e-12)
    assert recovery.formula_error == pytest.approx(0, abs=1e-9)
    assert offline.formula_error > 0.5
    assert "dN^2 + N^2 within 0.0 %; power law N^2.00 (±0.00) d^1.00 (±0.00)" in recovery.statement
