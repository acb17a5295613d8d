"""What a client costs by the number of clients."""

from dataclasses import replace

import numpy as np
import pytest

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


def test_lines_of_a_client_and_round_without_the_first_run_over_the_number_of_clients(run, draw):
    axes = draw("client-costs", [run(20), run(4), run(4)]).axes
    lines = [line for axis in axes for line in axis.lines]
    assert [list(line.get_xdata()) for line in lines] == [[4, 20]] * 6
    assert [line.get_ydata()[0] for line in lines] == pytest.approx([10.0, 20.0, 3.0, 4.0, 1.0, 1.0])
    assert [line.get_ydata()[1] for line in lines] == pytest.approx([10.0, 20.0, 3.0, 4.0, 1.0, 1.0])


def test_runs_that_do_not_compare_are_refused(run, draw):
    few, many = run(4), run(20)
    with pytest.raises(BadInput, match="as many clients"):
        draw("client-costs", [few, few])
    with pytest.raises(BadInput, match="numbers of ranks"):
        draw("client-costs", [few, replace(many, attempts=(replace(many.attempts[-1], ranks=3),))])
