"""How long things take on a device, by hand; devices from files."""

import numpy as np
import pytest
from pydantic import ValidationError

from fedmpi.devices.base import NANOSECONDS
from fedmpi.devices.options import EqualOptions, FileOptions, LognormalOptions, TwoSpeedOptions
from fedmpi.errors import BadInput


def test_a_round_is_latency_transfers_and_training():
    devices = EqualOptions(speed=2.0, up=8.0, down=16.0, latency_ms=5.0).make(0, 3)
    gets, trains, sends = devices.work(1, 4 * 10**9, 10**6, 10**6)
    assert [gets, trains, sends] == [505_000_000, 2 * NANOSECONDS, 1_005_000_000]
    assert devices.end(1, 7, 100) == 107


@pytest.mark.long
def test_work_rests_while_a_device_is_not_there():
    devices = EqualOptions(on=5.0, off=3.0).make(4, 40)
    assert devices.end(0, 10**12, 1) > 10**12
    ends = devices._ends[0]
    first = 0 if ends[0] else 1  # a device may begin where it is not there
    there, back = ends[2 * first], ends[2 * first + 1]
    assert devices.end(0, there - 10, 10) == there
    assert devices.end(0, there - 10, 11) == back + 1
    assert devices.end(0, there, 1) == back + 1
    for client in range(40):
        assert devices.end(client, 10**14, 1) >= 10**14 + 1
    for first, mean in ((0, 5.0), (1, 3.0)):
        lengths = np.concatenate([np.diff([0, *ends])[first + 2 :: 2] for ends in devices._ends.values()])
        assert len(lengths) > 10_000
        assert lengths.mean() / NANOSECONDS == pytest.approx(mean, rel=0.03)
    again = EqualOptions(on=5.0, off=3.0).make(4, 40)
    assert [again.end(client, 10**11, 10**9) for client in range(40)] == [
        devices.end(client, 10**11, 10**9) for client in range(40)
    ]


def test_a_share_of_the_devices_is_slower():
    devices = TwoSpeedOptions(share=0.25, factor=8.0, speed=16.0).make(3, 12)
    assert sorted(devices.speed.tolist()) == [2.0] * 3 + [16.0] * 9
    assert np.array_equal(devices.up / 10.0, devices.speed / 16.0)
    assert TwoSpeedOptions(share=0.25).make(4, 12).speed.tolist() != devices.speed.tolist()


def test_speeds_and_rates_spread_around_their_medians():
    devices = LognormalOptions(speed=3.0, speed_sigma=0.5, rate_sigma=2.0).make(1, 4000)
    logs, rates = np.log(devices.speed / 3.0), np.log(devices.down / 50.0)
    assert abs(np.median(logs)) < 0.03
    assert abs(logs.std() - 0.5) < 0.02
    assert abs(rates.std() - 2.0) < 0.06
    assert abs(np.corrcoef(logs, rates)[0, 1]) < 0.05
    assert np.allclose(devices.up / 10.0, devices.down / 50.0)


def test_a_file_says_what_differs(tmp_path):
    path = tmp_path / "devices.csv"
    path.write_text("client,speed,up\n0,1.5,2\n1,4,8\n")
    options = FileOptions(path=str(path), down=6.0)
    assert options.model_dump()["columns"] == {"speed": (1.5, 4.0), "up": (2.0, 8.0)}
    assert "path" not in options.model_dump()
    stored = FileOptions(**options.model_dump())
    devices = stored.make(0, 2)
    assert (devices.speed.tolist(), devices.down.tolist()) == ([1.5, 4.0], [6.0, 6.0])
    with pytest.raises(BadInput, match="2 lines for 3 clients"):
        stored.make(0, 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("", "a line of names"),
        ("speed\nfast\n", "a line of numbers per client"),
        ("speed,up\n1\n", "a number in each column"),
        ("speed\n", "a number in each column"),
        ("speed\n0\n", "column speed: 0 is not between"),
        ("speed\nnan\n", "finite number"),
        ("gigahertz\n3\n", "some of speed, up, down"),
        ("speed,speed,client\n3,1,0\n", "names a column twice"),
        ("\x00\n", "some of speed|a line of names|a number in|cannot be read"),
    ],
)
def test_a_file_that_is_none_is_one_line(tmp_path, text, words):
    path = tmp_path / "devices.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValidationError, match=words):
        FileOptions(path=str(path))
