from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from fedmpi.graphs.batch import Batch
from fedmpi.graphs.encodings import structure_encoding
from tests.making import generated


def batch_of(count):
    """Return a batch of the first graphs of a generated domain, with the encoding that FedStar reads."""
    graphs = generated(0, count)
    return Batch.of(replace(graphs, structure=structure_encoding(graphs.topology, 16, 16)))


@pytest.fixture(scope="session")
def batch():
    return batch_of(24)


def step(model, batch, streams, kernels="csr"):
    """Return the outputs of a step, and leave the gradient of its loss in the model."""
    model.gradient.zero_()
    logits = model.module(batch, streams, kernels)
    torch.nn.functional.cross_entropy(logits, batch.labels).backward()
    return logits.detach()


def dense_flops(model, batch, streams=None):
    """Return what torch counts of a forward pass by torch-geometric, and of a step."""
    found = []
    for passed in (
        lambda: model.module(batch, streams, "reference"),
        lambda: step(model, batch, streams, "reference"),
    ):
        with FlopCounterMode(display=False) as counter:
            passed()
        found.append(counter.get_total_flops())
    return found
