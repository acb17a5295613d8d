"""Declared messages: shapes and bytes of what is told to each client apart."""

import numpy as np
import pytest

from fedmpi.algorithms.program import Message
from fedmpi.client.layouts import MessageLayout
from fedmpi.programs.hook_checks import Breach


def test_a_personal_array_is_told_of_all_clients_and_a_client_gets_its_own():
    layout = MessageLayout({"row": Message((2,), personal=True)}, clients=3)
    assert layout.shape("row") == (2,)
    assert layout.nbytes == 8
    assert layout.checked("row", np.zeros((3, 2), np.float32)).shape == (3, 2)
    with pytest.raises(Breach, match=r"sent row as float32 \[2\]: it is float32 \[3, 2\]"):
        layout.checked("row", np.zeros(2, np.float32))
