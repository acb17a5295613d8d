"""Runs by the virtual clock: whose updates lead where, in record and checkpoints."""

import numpy as np
import pytest

from fedmpi.comm.world import World
from fedmpi.errors import BadInput, Interrupted
from fedmpi.runs.run import run
from fedmpi.runs.signals import StopRequest
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.mpi.session import Silent, StopsAfter, only

SGD = ("case=sampled", "participation=1.0", "batch_size=1000", "model.dropout=0.0", "optimizer=sgd")


def done(root, *settings):
    """Return the record of a run."""
    job = only(root, *settings)
    run(job, World(), Silent(), StopRequest())
    return load_run(job.folder)


def devices(tmp_path, *speeds):
    """Return the setting of devices of these speeds, whose links take no time to speak of."""
    path = tmp_path / f"{'-'.join(map(str, speeds))}.csv"
    path.write_text("\n".join(["speed", *map(str, speeds)]) + "\n")
    return (
        "devices=file",
        f"devices.path={path}",
        "devices.up=1e9",
        "devices.down=1e9",
        "devices.latency_ms=0.0",
    )


def model(record, round):
    """Return the digest of the one model that all clients have."""
    found = set(record.results["parameter_digest"][round].tolist())
    assert len(found) == 1
    return found.pop()


def test_devices_change_no_model_and_a_buffer_of_all_is_a_round(tmp_path):
    plain = done(tmp_path / "plain", *SGD)
    clocked = done(tmp_path / "clocked", *SGD, "devices=lognormal")
    whole = done(tmp_path / "whole", *SGD, "devices=lognormal", "schedule=buffered", "schedule.size=5")
    digests = plain.results["parameter_digest"]
    assert np.array_equal(digests, clocked.results["parameter_digest"])
    assert np.array_equal(digests, whole.results["parameter_digest"])
    clock = clocked.results["virtual_clock"]
    assert np.array_equal(clock, whole.results["virtual_clock"])
    assert np.array_equal(clock, np.cumsum(np.max(clocked.results["device_seconds"], 1)).round(9))
    seconds = clocked.measured("virtual_seconds")
    np.testing.assert_allclose(np.cumsum(seconds), clock, rtol=1e-12)


@pytest.mark.parametrize("case", ["fednova", "q-fedavg"])
def test_a_buffer_of_all_weighs_as_the_algorithm_does(tmp_path, case):
    settings = (f"case={case}", "participation=1.0", "devices=lognormal")
    rounds = done(tmp_path / "rounds", *settings)
    steps = done(tmp_path / "steps", *settings, "schedule=buffered", "schedule.size=5")
    for name in ("parameter_digest", "test_loss"):
        assert np.array_equal(rounds.results[name], steps.results[name])


def test_running_statistics_are_averaged_and_not_added(tmp_path):
    """A variance that old updates are added to falls below 0."""
    buffered = ("schedule=buffered", "schedule.size=2", "devices=lognormal", "rounds=6")
    assert done(tmp_path / "added", "case=feddyn", "participation=1.0", *buffered).status == "complete"
    still = ("schedule=asynchronous", "schedule.rate=1e-9", "devices=lognormal", "model.norm=batch")
    losses = done(tmp_path / "mixed", "case=sampled", "participation=1.0", *still).results["test_loss"]
    np.testing.assert_allclose(losses, np.broadcast_to(losses[0], losses.shape), rtol=1e-6)


def test_the_clock_counts_the_model_flops_and_bytes_of_the_record(tmp_path):
    record = done(tmp_path, *SGD, "devices=equal", "local_epochs=2", "batch_size=20")
    results = record.results
    bytes_of = 8e-6 * (results["client_bytes_up"] / 10 + results["client_bytes_down"] / 50)
    seconds = 0.04 + bytes_of + results["model_flops"] * 1e-10
    np.testing.assert_allclose(results["device_seconds"], seconds, atol=2e-9)


@pytest.mark.parametrize("further", [(), ("compression=top-k",)], ids=["plain", "compressed"])
def test_the_clock_counts_the_neighbours_that_take_part(tmp_path, further):
    ring = ("topology=ring", "weights=equal", "participation=0.5", "devices=equal", *further)
    results = done(tmp_path, "case=sampled", *ring).results
    works, bytes_of = results["participated"] == 1, (results["client_bytes_up"], results["client_bytes_down"])
    seconds = 0.04 + 8e-6 * (bytes_of[0] / 10 + bytes_of[1] / 50) + results["model_flops"] * 1e-10
    np.testing.assert_allclose(results["device_seconds"][works], seconds[works], atol=2e-9)


def test_a_model_mixes_with_what_came_of_an_older_one(tmp_path):
    """Client 1's model takes the place of the server's, whichever the server had made of client 0's."""
    settings = (*SGD, "dataset.synthetic.graphs=120", "partition.clients=2", "rounds=2")
    mixing = (*settings, "schedule=asynchronous", "schedule.rate=1.0", "schedule.staleness=constant")
    late = done(tmp_path / "late", *mixing, *devices(tmp_path, 9, 5))
    early = done(tmp_path / "early", *mixing, *devices(tmp_path, 5, 9))
    assert late.results["staleness"].tolist() == [[0, -1], [-1, 1]]
    assert early.results["staleness"].tolist() == [[-1, 0], [1, -1]]
    first, second = ((model(each, 0), model(each, 1)) for each in (early, late))
    assert first == second[::-1] or _close(early, late)
    buffered = (*settings, "schedule=buffered", "schedule.size=1", "schedule.staleness=constant")
    added = done(tmp_path / "added", *buffered, *devices(tmp_path, 9, 5))
    assert model(added, 0) == model(late, 0)
    assert model(added, 1) != model(late, 1)


def _close(early, late):
    """Return whether models that are the same but for rounding have the same scores."""
    names = ("test_loss", "val_loss")
    return all(
        np.allclose(early.results[name][place], late.results[name][1 - place], rtol=1e-5)
        for name in names
        for place in (0, 1)
    )


@pytest.mark.parametrize("case", ["buffered", "asynchronous", "deadline", "late"])
def test_a_run_goes_on_with_the_models_that_were_under_way(tmp_path, case):
    whole = only(tmp_path / "whole", f"case={case}")
    stopped, resumed = (only(tmp_path / "stopped", f"case={case}", resume=True) for _ in range(2))
    run(whole, World(), Silent(), StopRequest())
    stop = StopRequest()
    with pytest.raises(Interrupted):
        run(stopped, World(), StopsAfter(stop, 2), stop)
    run(resumed, World(), Silent(), StopRequest())
    assert differences(whole.folder, resumed.folder) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("devices=equal", "devices.speed=1e-300"), "all work of client 0 takes"),
        (("devices=equal", "devices.on=1e-9", "devices.off=1e-9"), "is interrupted"),
    ],
)
def test_what_does_not_fit_the_clients_ends_before_a_run_folder(tmp_path, settings, words):
    job = only(tmp_path, *SGD, *settings)
    with pytest.raises(BadInput, match=words):
        run(job, World(), Silent(), StopRequest())
    assert not job.folder.exists()
