"""Where attackers are among groups, counted by hand."""

import numpy as np
import pytest

from fedmpi.analysis.trust import company

HOSTILE = np.array([True, True, False, False, False])


@pytest.mark.parametrize(
    ("group", "together", "exposed"),
    [
        ([0, 0, 0, 0, 0], 0.4, 1.0),  # nothing split
        ([1, 1, 0, 0, 0], 1.0, 0.0),  # isolated together
        ([1, 2, 0, 0, 0], 1.0, 0.0),  # each alone
        ([0, 1, 0, 1, 2], 0.5, 2 / 3),
    ],
)
def test_isolated_attackers_are_among_themselves(group, together, exposed):
    assert company(np.array(group), HOSTILE) == pytest.approx((together, exposed))
