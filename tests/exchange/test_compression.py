"""Compressed updates and their residuals, by hand; in the record and in checkpoints."""

import numpy as np
import torch

from fedmpi.comm.world import World
from fedmpi.errors import Interrupted
from fedmpi.exchange.compression import RESIDUAL, Compression
from fedmpi.runs.run import run
from fedmpi.runs.signals import StopRequest
from fedmpi.store.identical import differences
from fedmpi.store.reader import load_run
from tests.exchange.compressed import largest
from tests.exchange.exchanged import reported, updates_of
from tests.mpi.session import Silent, StopsAfter, only


def sent(kept, update, lost=()):
    """Return what client 0 sends of an update of four parameters and a statistic, and its reported norm."""
    updates = updates_of([*update, 9], size=4, lost=lost)
    with largest(0.5):
        Compression(None, {0: kept}).alter(0, np.arange(1), updates)
    return updates.trained.deltas[0].tolist(), reported(updates, "delta_norm")[0]


def test_what_was_left_out_goes_with_the_next_update():
    kept = {RESIDUAL: torch.zeros(4)}
    assert sent(kept, [3, -1, 2, -4]) == ([3, 0, 0, -4, 9], 5.0)
    assert kept[RESIDUAL].tolist() == [0, -1, 2, 0]
    assert sent(kept, [1, -3, 1, 0]) == ([0, -4, 3, 0, 9], 5.0)
    assert kept[RESIDUAL].tolist() == [1, 0, 0, 0]


def test_a_client_whose_update_is_lost_keeps_its_residual():
    kept = {RESIDUAL: torch.tensor([0.0, 5.0, 0.0, 0.0])}
    assert sent(kept, [3, -1, 2, -4], lost=[0])[0] == [0, 4, 0, -4, 9]
    assert kept[RESIDUAL].tolist() == [0, 5, 0, 0]


def test_residuals_are_in_checkpoints_and_bytes_in_the_record(tmp_path):
    plain, whole = (only(tmp_path / name, "case=sampled") for name in ("plain", "whole"))
    stopped, resumed = (only(tmp_path / "stopped", "case=sampled", resume=True) for _ in range(2))
    run(plain, World(), Silent(), StopRequest())
    with largest(0.1):
        run(whole, World(), Silent(), StopRequest())
        stop = StopRequest()
        try:
            run(stopped, World(), StopsAfter(stop, 2), stop)
        except Interrupted:
            run(resumed, World(), Silent(), StopRequest())
    assert load_run(resumed.folder).rounds_completed == 4
    assert differences(whole.folder, resumed.folder) == []
    results = load_run(whole.folder).results
    took_part, model = results["participated"].astype(bool), 29_570
    assert (results["client_bytes_up"] == took_part * 8 * int(0.1 * model)).all()
    assert (results["client_bytes_down"] == took_part * 4 * model).all()
    assert results["test_loss"][0].tolist() != load_run(plain.folder).results["test_loss"][0].tolist()
