"""FedPer: which tensors leave a client, and of which models."""

from fedmpi.models.options import FedGraphNNGcnOptions, GcnOptions, GinEncoderOptions, GinOptions
from tests.algorithms.programs import named
from tests.making import flat
from tests.refusals import refused

FEDPER = named("fedper")  # FedRep has these hooks from it


def kept(options):
    """Return the names of the tensors that stay with the client."""
    return [slot.name for slot in flat(options).slots if not FEDPER.shares(slot.name, "conv")]


def test_the_layers_after_the_pooling_stay():
    head = ["post.weight", "post.bias", "readout.weight", "readout.bias"]
    assert kept(GinOptions()) == kept(GinOptions(norm="batch")) == head
    assert kept(GcnOptions(head_layers=1)) == head[2:]
    assert kept(FedGraphNNGcnOptions()) == ["last.weight", "last.bias"]
    assert FEDPER.shares("pre.weight", "conv")  # whatever the case shares


def test_a_model_without_a_head_is_refused():
    with refused(match="choose a model that has one"):
        FEDPER.validate(GinEncoderOptions())
