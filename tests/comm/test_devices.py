"""Which GPU a rank takes; CUDA is played by lists of names."""

import os

import pytest
import torch

from fedmpi.comm.devices import choose


@pytest.fixture
def cuda(monkeypatch):
    """Have torch see what CUDA would show of CUDA_VISIBLE_DEVICES: of MIG names the first alone."""
    taken = []

    def count():
        names = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
        return 1 if names[0].startswith("MIG-") else len(names)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", count)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    return taken


@pytest.mark.parametrize(
    ("visible", "local_rank", "index", "left"),
    [
        ("0,1,3", 2, 2, "0,1,3"),
        ("0,1", 3, 1, "0,1"),  # ranks share GPUs
        ("GPU-8932f937,GPU-1b0c7a21", 1, 1, "GPU-8932f937,GPU-1b0c7a21"),
        ("GPU-8932f937", 1, 0, "GPU-8932f937"),  # one to each rank
        ("MIG-5c1f,MIG-77aa,MIG-90ee", 1, 0, "MIG-77aa"),
        ("MIG-GPU-8932f937/1/0, MIG-GPU-8932f937/2/0", 3, 0, "MIG-GPU-8932f937/2/0"),
    ],
)
def test_a_rank_takes_the_gpu_of_its_local_number(visible, local_rank, index, left, cuda, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    for _ in range(2):  # a sweep chooses for each of its cases
        assert choose("cuda", local_rank) == torch.device("cuda", index)
        assert os.environ["CUDA_VISIBLE_DEVICES"] == left
    assert cuda == [torch.device("cuda", index)] * 2
