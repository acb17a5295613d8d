"""What comes from a device comes in one copy and is what it was."""

import numpy as np
import torch

from fedmpi.graphs.transfer import Fetched


def test_values_of_all_types_lie_in_one_block_and_are_as_they_were():
    values = [
        torch.tensor([True, False, True]),
        torch.arange(6.0).view(2, 3).t(),
        torch.tensor([1e300, -2.0], dtype=torch.float64),
        torch.zeros(0, 4),
    ]
    fetched = Fetched(*values)
    found = fetched._sent(torch.device("cpu"))
    assert all(
        torch.equal(*pair) and pair[0].dtype == pair[1].dtype for pair in zip(found, values, strict=True)
    )
    assert len({each.untyped_storage().data_ptr() for each in found}) == 1


def test_values_are_those_of_the_moment():
    values = torch.ones(2)
    fetched = Fetched(values)
    values.zero_()
    (found,) = fetched.get()
    assert np.array_equal(found, [1.0, 1.0])
