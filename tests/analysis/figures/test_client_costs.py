"""What a client costs by the number of clients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedmpi.analysis.figures.client_costs import costs
from fedmpi.errors import BadInput


@pytest.fixture
def run(record):
    """Return a function that records three rounds over some clients; the first takes ten times as long."""

    def make(clients):
        names = [f"client-{number}" for number in range(clients)]
        made = record({}, clients=names, client_bytes_up=[[3000] * clients] * 3)
        attempt = made.attempts[-1]
        measured = {
            **attempt.measurements,
            "round_seconds": np.array([10.0, 1.0, 1.0]) * clients / 100,
            "cpu_seconds": np.array([[20.0], [2.0], [2.0]]) * clients / 100,
            "collective_bytes": np.full((3, 1, 1), 4000),
            "peak_host_bytes": np.full((3, 1), 10**9),
        }
        return replace(made, attempts=(replace(attempt, measurements=measured),))

    return make


def test_costs_are_those_of_a_client_and_round_without_the_first(run):
    found = costs(run(4))
    assert found[:2] == (4, 1)
    assert found[2:] == pytest.approx((10.0, 20.0, 3.0, 4.0, 1.0, 1.0))


def test_lines_run_over_the_number_of_clients(run, draw):
    time, traffic, memory = draw("client-costs", [run(20), run(4), run(4)]).axes
    assert [list(line.get_xdata()) for line in time.lines] == [[4, 20], [4, 20]]
    assert list(time.lines[0].get_ydata()) == pytest.approx([10.0, 10.0])
    assert list(traffic.lines[1].get_ydata()) == pytest.approx([4.0, 4.0])
    assert list(memory.lines[0].get_ydata()) == pytest.approx([1.0, 1.0])


def test_runs_that_do_not_compare_are_refused(run, draw):
    with pytest.raises(BadInput, match="as many clients"):
        draw("client-costs", [run(4), run(4)])
    other = run(20)
    other = replace(other, attempts=(replace(other.attempts[-1], ranks=3),))
    with pytest.raises(BadInput, match="numbers of ranks"):
        draw("client-costs", [run(4), other])
