import torch

from fedmpi.graphs.batch import Batch
from tests.making import clique, packed


def batch_of(topology):
    x = torch.randn(topology.num_nodes, 5, generator=torch.Generator().manual_seed(1))
    return Batch(topology, x, torch.zeros(topology.num_graphs, dtype=torch.int64))


def test_sums_and_gradients_by_twins_are_those_by_edges():
    batch = batch_of(packed(*map(clique, (20, 30, 12))))
    assert batch.num_entries_by_twins == 3  # one class per clique, which sees itself
    found = []
    for summed in (batch.sum_by_twins, batch.sum_neighbourhood):
        x = batch.x.clone().requires_grad_()
        out = summed(x)
        (out * torch.arange(out.numel()).view(out.shape).sin()).sum().backward()
        found.append((out.detach(), x.grad))
    for ours, plain in zip(*found, strict=True):
        assert torch.allclose(ours, plain, rtol=1e-5, atol=1e-5)


def test_graphs_with_few_edges_are_summed_as_ever():
    batch = batch_of(packed(*map(clique, (4, 5))))
    assert batch.num_entries_by_twins == 4 * 3 + 5 * 4
    assert torch.equal(batch.sum_by_twins(batch.x), batch.sum_neighbourhood(batch.x))
