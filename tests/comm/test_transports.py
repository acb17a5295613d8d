"""Sums by torch.distributed on one rank; sessions of tests/mpi have them on several."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import distributed

from fedmpi.comm.collectives import alone
from fedmpi.comm.transports import _check_apart, closing, connect
from fedmpi.comm.world import World
from fedmpi.errors import BadInput, Diverged, RankFailed, RunFailed
from tests.refusals import refused


@pytest.fixture
def world():
    return World()


@pytest.fixture
def connected(world):
    with closing(world.collectives):
        connect("gloo", world, torch.device("cpu"))
        yield world.collectives


def test_floats_are_added_in_the_order_of_ranks(connected, monkeypatch):
    """(1e8 + 1) - 1e8 is 0 in single precision, and (1e8 - 1e8) + 1 is 1."""

    def gather(own, parts, dst, async_op):
        for part, value in zip(parts, (1e8, 1.0, -1e8), strict=True):
            part.fill_(value)
        return SimpleNamespace(is_completed=lambda: True, wait=lambda: None)

    connected.transport._size = 3
    monkeypatch.setattr(distributed, "gather", gather)
    assert connected.reduce(np.array([1e8], np.float32)).tolist() == [0.0]


def test_a_sum_leaves_its_part_as_it_is_and_is_counted(connected):
    before, part = connected.payload_bytes.sum(), np.arange(6).reshape(2, 3)
    total = connected.reduce(part)
    total += 1
    assert (total.tolist(), part.tolist()) == ([[1, 2, 3], [4, 5, 6]], [[0, 1, 2], [3, 4, 5]])
    assert connected.payload_bytes.sum() - before == 48


def test_a_rank_that_has_died_is_one_line(connected, monkeypatch):
    def reduce(part, dst, async_op):
        raise RuntimeError("Connection closed by peer [127.0.0.1]:4321\nmore of it")

    monkeypatch.setattr(distributed, "reduce", reduce)
    line = "a sum by gloo failed: another rank has died, or the network has failed (Connection closed by peer"
    with refused(line, RankFailed):
        connected.reduce(np.arange(3))


def test_a_torch_without_the_transport_is_refused(world, monkeypatch):
    monkeypatch.setattr(distributed, "is_nccl_available", lambda: False)
    with refused('reduction.transport = "nccl": torch ', BadInput):
        connect("nccl", world, torch.device("cpu"))


def test_nccl_takes_a_gpu_for_each_rank():
    _check_apart([("a", "GPU-1"), ("a", "GPU-2"), ("b", "GPU-1")])
    with refused("ranks 1 and 2 share a GPU of a, and NCCL takes one for each rank", BadInput) as found:
        _check_apart([("a", "GPU-1"), ("a", "GPU-2"), ("a", "GPU-2")])
    assert found.value.agreed


@pytest.mark.parametrize(("error", "left"), [(Diverged("of all"), 1), (RunFailed("of one rank"), 0)])
def test_a_rank_that_ends_alone_does_not_leave_the_others_in_a_sum(error, left):
    ended, collectives = [], alone()
    collectives.transport = SimpleNamespace(close=lambda: ended.append(1))
    with pytest.raises(type(error)), closing(collectives):
        raise error
    assert len(ended) == left
