import pytest

from fedmpi.reproduction import measures

ALONE = {1: [0.7, 0.6], 2: [0.5, 0.6], 3: [0.1, 0.1]}
OURS = {1: [0.8, 0.5], 2: [0.6, 0.6]}


def test_only_seeds_that_both_have_are_paired(cell):
    # Differences of the averages 0 and 0.05: t(0.975, 1) = 12.706, std 0.03536, over the root of 2.
    found = measures.lead(cell("fedavg", OURS), cell("self-train", ALONE), "score")
    assert (found.signed, found.count) == ("+0.0250 ± 0.3177", 2)


def test_gains_are_client_by_client(cell):
    found = measures.gains(cell("fedavg", OURS), cell("self-train", ALONE), "score")
    assert (found.client, measures.ratio(found.improved, found.clients)) == ("client-1", "1/2")
    assert found.least.mean == pytest.approx(-0.05)


def test_no_gain_counts_as_improved_also_in_floating_point(cell):
    ours, alone = {1: [0.1], 2: [0.2], 3: [0.3]}, {1: [0.3], 2: [0.1], 3: [0.2]}
    found = measures.gains(cell("fedavg", ours), cell("self-train", alone), "score")
    assert (found.least.mean, found.improved.mean) == (0.0, 1.0)


def test_a_ratio_is_not_surer_than_half_a_client(cell):
    found = measures.gains(cell("fedavg", {1: [0.9, 0.9], 2: [0.9, 0.9]}), cell("self-train", ALONE), "score")
    assert (found.improved.mean, found.improved.error) == (1.0, 0.25)


def test_without_a_shared_seed_there_is_nothing(cell):
    ours, alone = cell("fedavg", {9: [0.5, 0.5]}), cell("self-train", ALONE)
    assert measures.lead(ours, alone, "score") is None
    assert measures.gains(ours, alone, "score") is None


def test_clients_without_a_value_are_left_out(cell):
    ours = cell("fedavg", {1: ["0.5", ""], 2: ["0.7", ""]})
    assert measures.average(ours, "score").mean == 0.6


def test_a_gain_as_a_part_of_self_trains_average(cell):
    # 0.66 / 0.6 and 0.55 / 0.5 in either seed: a tenth, always.
    ours, alone = {1: [0.66], 2: [0.55]}, {1: [0.60], 2: [0.50], 3: [0.1]}
    found = measures.part_gained(cell("gcfl", ours), cell("self-train", alone), "score")
    assert (found.mean, found.error, found.count) == (pytest.approx(0.1), 0.0, 2)
    assert measures.part_gained(cell("gcfl", {9: [0.5]}), cell("self-train", alone), "score") is None


@pytest.fixture
def trio(cell):
    """GCFL gains 0.1, 0, 0.2 and -0.1 over self-train, FedAvg 0.1 and then loses 0.2 three times."""
    return (
        cell("gcfl", {seed: [0.6, 0.5, 0.7, 0.4] for seed in (1, 2)}),
        cell("fedavg", {seed: [0.6, 0.3, 0.3, 0.3] for seed in (1, 2, 3)}),
        cell("self-train", {seed: [0.5] * 4 for seed in (1, 2)}),
    )


def test_clients_improved_beyond_another_methods(trio):
    # Three of four against one of four; twice that is two of four.
    found = measures.gains_apart(trio, "score", measures.improved)
    assert (found.mean, found.error, found.count) == (0.5, 0.125, 2)
    assert measures.gains_apart(trio, "score", measures.improved, times=2).mean == 0.25


def test_the_smallest_gain_over_another_methods(trio):
    assert measures.gains_apart(trio, "score", measures.least).mean == pytest.approx(0.1)


def test_the_least_error_of_a_number_of_clients_shrinks_beyond_five_seeds(cell):
    def error(count):
        seeds = range(1, count + 1)
        ours, alone = ({seed: [value] * 4 for seed in seeds} for value in (0.6, 0.5))
        return measures.gains(cell("gcfl", ours), cell("self-train", alone), "score").improved.error

    # Half a client of four; at 20 seeds times the root of 5 / 20.
    assert [error(count) for count in (2, 5, 20)] == [0.125, 0.125, 0.0625]
