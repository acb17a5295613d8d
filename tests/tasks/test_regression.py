"""Labels of all clients: how targets are scaled."""

import numpy as np
import pytest

from fedmpi.tasks.regression import standardisation


def test_targets_are_scaled_by_the_labels_that_are_there():
    nan = np.nan
    center, scale = standardisation(
        np.array([[1.0, nan, 5.0, nan], [3.0, 2.0, 5.0, nan], [5.0, 4.0, 5.0, nan]])
    )
    assert center == pytest.approx([3.0, 3.0, 5.0, 0.0])
    assert scale == pytest.approx([(8 / 3) ** 0.5, 1.0, 1.0, 1.0])
