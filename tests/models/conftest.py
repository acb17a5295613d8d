import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from fedmpi.datasets.features import build as build_features
from fedmpi.datasets.synthetic import SyntheticOptions, generate
from fedmpi.graphs.batch import Batch


def graphs_of(count):
    """Return the first graphs of a generated dataset."""
    return build_features(generate(SyntheticOptions(graphs=count), 1), np.arange(count), "original")


@pytest.fixture(scope="session")
def batch():
    return Batch.of(graphs_of(24))


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
